package daemon

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

// TestAnswersNameNoHiddenKeys: a user that may read one alias of an object gets no version that stands under another
// key alone, by a request for it or by a verb that reads, and no history with such a key. A version that its alias
// shows, it gets. An error about a key that was moved does not name the key that took its place.
func TestAnswersNameNoHiddenKeys(t *testing.T) {
	t.Parallel()
	r := newRunning(t, 1, func(p *scope.Policy) { p.Actions = action.Table{{Verb: "get", Class: action.Read}} })
	p := newPorts(t, r.on[0])
	p.enable()
	owner := p.owner()
	hidden, pub, old := []byte("/b/hidden"), []byte("/a/pub"), []byte("/a/old")
	put := func(key []byte, value string) {
		t.Helper()
		must[*aweighv1.PutResponse](t)(owner.Put(p.ctx, &aweighv1.PutRequest{Key: key, Value: []byte(value)}))
	}
	put(hidden, "secret")
	put(hidden, "public")
	p.name(scope.Naming{Kind: scope.Bind, Key: hidden, To: pub})
	put(hidden, "public")
	put(hidden, "public")
	for user, may := range map[string]bool{"reader": false, "root": true} {
		c := p.api(p.token(user))
		for what, err := range map[string]error{
			"resolves": asks(c.Resolve, p.ctx, &aweighv1.ResolveRequest{Key: pub, Version: 1}),
			"acts":     asks(c.Act, p.ctx, &aweighv1.ActRequest{Verb: "get", Key: pub, Version: 1}),
			"tries a rule on": asks(c.Judge, p.ctx, &aweighv1.JudgeRequest{
				Verb: "nod", Key: pub, Class: "claim", When: "object.key.startsWith('/a/')",
			}),
			"looks up":                           asks(c.History, p.ctx, &aweighv1.HistoryRequest{Key: pub}),
			"proves the absence of a key beside": asks(c.ProveRange, p.ctx, &aweighv1.ProveRangeRequest{Key: []byte("/a/z")}),
		} {
			if may && err != nil || !may && connect.CodeOf(err) != connect.CodePermissionDenied {
				t.Errorf("%s %s a key that it may not read: %v", user, what, err)
			}
		}
		if err := asks(c.ProveRange, p.ctx, &aweighv1.ProveRangeRequest{Key: pub}); err != nil {
			t.Errorf("%s proves a key that it may read: %v", user, err)
		}
		for _, version := range []int64{0, 2, 3} {
			m, err := c.Resolve(p.ctx, connect.NewRequest(&aweighv1.ResolveRequest{Key: pub, Version: version}))
			if err != nil || string(m.Msg.Kv.Key) != string(pub) || string(m.Msg.Kv.Value) != "public" {
				t.Errorf("%s, version %d: %v, %v", user, version, m, err)
			}
		}
	}
	moved := []byte("/b/moved")
	put(old, "v")
	p.name(scope.Naming{Kind: scope.Move, Key: old, To: moved, Until: aweigh.InstantOf(time.Now().Add(time.Hour))})
	must[*aweighv1.DeleteResponse](t)(owner.Delete(p.ctx, &aweighv1.DeleteRequest{Key: moved}))
	err := asks(p.api(p.token("reader")).Resolve, p.ctx, &aweighv1.ResolveRequest{Key: old})
	if connect.CodeOf(err) != connect.CodeNotFound || strings.Contains(err.Error(), string(moved)) {
		t.Error(err)
	}
}
