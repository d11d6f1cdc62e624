package api_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

func (w *world) name(req *aweighv1.NameRequest) (*aweighv1.NameResponse, error) {
	resp, err := w.Name(w.ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return resp.Msg, nil
}

func (w *world) resolve(key string, version int64) (*aweighv1.ResolveResponse, error) {
	resp, err := w.Resolve(w.ctx, connect.NewRequest(&aweighv1.ResolveRequest{Key: []byte(key), Version: version}))
	if err != nil {
		return nil, err
	}
	return resp.Msg, nil
}

func TestNamesOverTheAPI(t *testing.T) {
	w := newWorld(t)
	uid := w.put(t, "/a", "1").Uid
	w.put(t, "/a", "2")
	bound, err := w.name(&aweighv1.NameRequest{Kind: aweighv1.NameRequest_KIND_BIND, Uid: uid, Key: []byte("/a"), To: []byte("/b")})
	if err != nil || bound.Uid != uid || bound.Repeated {
		t.Fatalf("%v, %v", bound, err)
	}
	until := time.Now().Add(time.Hour).UnixNano()
	move := &aweighv1.NameRequest{
		Kind: aweighv1.NameRequest_KIND_MOVE, Key: []byte("/a"), To: []byte("/c"), UntilNs: until,
		Once: &aweighv1.Once{Nonce: bytes.Repeat([]byte{3}, 16), ValidUntilNs: time.Now().Add(time.Minute).UnixNano()},
	}
	for _, again := range []bool{false, true} {
		if moved, err := w.name(move); err != nil || moved.Repeated != again {
			t.Fatalf("%v, %v; want repeated %v", moved, err, again)
		}
	}
	r, err := w.resolve("/a", 1)
	if err != nil || string(r.Key) != "/c" || r.Uid != uid || !r.Claims || r.Newest != 2 || r.Number != 1 || string(r.Kv.Value) != "1" ||
		r.Moved == nil || r.Moved.UntilNs != until || string(r.Moved.To) != "/c" {
		t.Fatalf("%v, %v", r, err)
	}
	left, err := w.Redirects(w.ctx, connect.NewRequest(&aweighv1.RedirectsRequest{Key: []byte{0}, RangeEnd: []byte{0}}))
	if err != nil || len(left.Msg.Moved) != 1 || left.Msg.More || string(left.Msg.Moved[0].Key) != "/a" {
		t.Fatalf("%v, %v", left, err)
	}
	forked, err := w.name(&aweighv1.NameRequest{Kind: aweighv1.NameRequest_KIND_FORK, Uid: uid, To: []byte("/f"), Place: r.Place})
	if err != nil || forked.Uid == uid || forked.Uid == "" {
		t.Fatalf("%v, %v", forked, err)
	}
	if _, err := w.name(&aweighv1.NameRequest{Kind: aweighv1.NameRequest_KIND_ROLLBACK, Uid: uid, Key: []byte("/b"), Place: r.Place}); err != nil {
		t.Fatal(err)
	}
	if r, err := w.resolve("/c", 0); err != nil || r.Number != 3 || string(r.Kv.Value) != "1" || r.Moved != nil {
		t.Fatalf("%v, %v", r, err)
	}
	object := func(begin string) *aweighv1.ObjectResponse {
		o, err := w.Object(w.ctx, connect.NewRequest(&aweighv1.ObjectRequest{Uid: begin}))
		if err != nil {
			t.Fatal(err)
		}
		return o.Msg
	}
	var classes []string
	o := object(strings.ToUpper(uid[:10]))
	for _, e := range o.Entries {
		classes = append(classes, e.Class)
	}
	want := []string{"alias-follow", "update", "alias-unbind", "alias-move", "alias-bind", "update", "insert"}
	if o.Uid != uid || len(o.Aliases) != 2 || !slices.Equal(classes, want) || o.Entries[1].Version != 3 || o.Entries[6].Version != 1 {
		t.Errorf("%v", o)
	}
	if o := object(forked.Uid); o.Parent != uid || o.Place.Revision != r.Place.Revision || len(o.Entries) != 1 {
		t.Errorf("%v", o)
	}
}

// TestNamesThatMakeNoSense: each is refused with a reason for programs.
func TestNamesThatMakeNoSense(t *testing.T) {
	w := newWorld(t)
	uid := w.put(t, "/a", "1").Uid
	other := w.put(t, "/o", "1").Uid
	for _, c := range []struct {
		name, reason string
		req          *aweighv1.NameRequest
	}{
		{"no kind", "invalid", &aweighv1.NameRequest{Uid: uid, Key: []byte("/a")}},
		{"a kind that is not there", "invalid", &aweighv1.NameRequest{Kind: 256 + 1, Uid: uid, Key: []byte("/a"), To: []byte("/b")}},
		{"no uid", "invalid", &aweighv1.NameRequest{Kind: aweighv1.NameRequest_KIND_BIND, Uid: "xyz", Key: []byte("/a"), To: []byte("/b")}},
		{"an alias of another", "failed", &aweighv1.NameRequest{Kind: aweighv1.NameRequest_KIND_UNBIND, Uid: other, Key: []byte("/a")}},
		{"a name in use", "failed", &aweighv1.NameRequest{Kind: aweighv1.NameRequest_KIND_MOVE, Uid: uid, Key: []byte("/a"), To: []byte("/o")}},
		{"a fork of nothing", "invalid", &aweighv1.NameRequest{Kind: aweighv1.NameRequest_KIND_FORK, Uid: uid, To: []byte("/b")}},
		{"a version that is not there", "failed", &aweighv1.NameRequest{
			Kind: aweighv1.NameRequest_KIND_FORK, Uid: uid, To: []byte("/b"), Place: &aweighv1.Place{Key: []byte("/a"), Revision: 77},
		}},
	} {
		if _, err := w.name(c.req); err == nil || reasonOf(t, err) != c.reason {
			t.Errorf("%s: %v, want reason %s", c.name, err, c.reason)
		}
	}
	for _, c := range []struct {
		key, reason string
		version     int64
	}{{"", "invalid", 0}, {"/none", "not_found", 0}, {"/a", "invalid", -1}, {"/a", "not_found", 2}} {
		if _, err := w.resolve(c.key, c.version); err == nil || reasonOf(t, err) != c.reason {
			t.Errorf("%q version %d: %v, want reason %s", c.key, c.version, err, c.reason)
		}
	}
	for begin, reason := range map[string]string{"": "invalid", uid[:3]: "invalid", "!!!!": "invalid", strings.Repeat("a", 53): "invalid", strings.Repeat("z", 9): "not_found"} { // order-free: each is checked alone
		if _, err := w.Object(w.ctx, connect.NewRequest(&aweighv1.ObjectRequest{Uid: begin})); err == nil || reasonOf(t, err) != reason {
			t.Errorf("%q: %v, want reason %s", begin, err, reason)
		}
	}
}

// TestAmbiguousUIDsAreNamed makes objects until two have UIDs that begin alike.
func TestAmbiguousUIDsAreNamed(t *testing.T) {
	w := newWorld(t)
	begun := make(map[string]string)
	for n := 0; n < 10_000; {
		txn := new(aweighv1.TxnRequest)
		for range 100 {
			txn.Success = append(txn.Success, &aweighv1.Op{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: fmt.Appendf(nil, "/%d", n)}}})
			n++
		}
		resp, err := w.Txn(w.ctx, connect.NewRequest(txn))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range resp.Msg.Responses {
			uid := r.GetPut().Uid
			other, twice := begun[uid[:4]]
			if begun[uid[:4]] = uid; !twice {
				continue
			}
			_, err := w.Object(w.ctx, connect.NewRequest(&aweighv1.ObjectRequest{Uid: uid[:4]}))
			if err == nil || reasonOf(t, err) != "invalid" || !strings.Contains(err.Error(), uid) || !strings.Contains(err.Error(), other) {
				t.Fatalf("%s and %s: %v", uid, other, err)
			}
			return
		}
	}
	t.Fatal("no two UIDs begin alike")
}
