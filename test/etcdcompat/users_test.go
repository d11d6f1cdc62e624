package etcdcompat

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// TestClientsWithPasswordsUseSeveralNodes: a client of etcd with a password and two endpoints sends its requests to both
// in turn, whichever gave it a token. It goes on, and so does its watch, when one of them is killed.
func TestClientsWithPasswordsUseSeveralNodes(t *testing.T) {
	s := startAweigh(t, 4)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	admin := s.client(t, 2)
	for _, do := range []func() error{
		func() error { return second(admin.UserAdd(ctx, "root", "of root")) },
		func() error { return second(admin.UserGrantRole(ctx, "root", "root")) },
		func() error { return second(admin.AuthEnable(ctx)) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: s.addresses[:2], Username: "root", Password: "of root", DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	events := c.Watch(ctx, "w/", clientv3.WithPrefix(), clientv3.WithRev(1))
	const count = 40
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range count {
			if i == count/2 {
				s.kill(t, 0)
			}
			key := fmt.Sprintf("w/%03d", i)
			for { // etcd's client sends no write again that may have been carried out
				soon, stop := context.WithTimeout(ctx, 5*time.Second)
				_, err := c.Txn(soon).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
					Then(clientv3.OpPut(key, "x")).Commit()
				stop()
				if err == nil {
					break
				}
				if i < count/2 || ctx.Err() != nil {
					t.Errorf("write %d: %v", i, err)
					return
				}
			}
			if _, err := c.Get(ctx, key); err != nil {
				t.Errorf("read %d: %v", i, err)
				return
			}
		}
	})
	expect(t, events, count)
	writing.Wait()
}

// second is the error of a call whose answer does not matter.
func second[T any](_ T, err error) error { return err }
