package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	dstest "github.com/ipfs/go-datastore/test"

	"github.com/aweigh/aweigh/internal/testshort"
)

func TestDatastorePassesTheCommonSuite(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	p := openMem(t, vfs.NewMem())
	defer closed(t, p)
	for name, s := range map[string]Store{"pebble": p, "mem": NewMem()} {
		t.Run(name, func(t *testing.T) { dstest.SubtestAll(t, Datastore(s, []byte("ds\xff"))) })
	}
}
