package diskstore

import (
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	ds "github.com/ipfs/go-datastore"
	dstest "github.com/ipfs/go-datastore/test"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/store"
)

func TestDatastorePassesTheCommonSuite(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	p := openMem(t, vfs.NewMem())
	defer closed(t, p)
	if !testshort.All() { // it reads the same keys in more than a thousand ways
		combinations := reflect.ValueOf(dstest.SubtestCombinations).Pointer()
		all := dstest.BasicSubtests
		dstest.BasicSubtests = slices.DeleteFunc(slices.Clone(all), func(f func(*testing.T, ds.Datastore)) bool {
			return reflect.ValueOf(f).Pointer() == combinations
		})
		defer func() { dstest.BasicSubtests = all }()
	}
	for name, s := range map[string]store.Store{"pebble": p, "mem": store.NewMem()} {
		t.Run(name, func(t *testing.T) { dstest.SubtestAll(t, store.Datastore(s, []byte("ds\xff"))) })
	}
}
