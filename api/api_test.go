package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/api"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// world is a network of one node with its API.
type world struct {
	aweighv1connect.NodeClient
	genesis scope.Genesis
	address string
	ctx     context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldUnder(t, scope.OpenPolicy(quorum.BFT))
}

// newNode returns the only node of a network, which does not run yet, and its store.
func newNode(t *testing.T, policy scope.Policy, change ...func(*node.Config)) (*node.Node, *diskstore.Store) {
	t.Helper()
	var keys [2]votes.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = votes.GenerateKey(votes.Ed25519, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	peer, err := machine.PeerOf(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	g, err := machine.NewGenesis("test", aweigh.InstantOf(time.Now()), policy,
		machine.Founder{Name: "one", Key: keys[1].Public(), Peer: peer})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := diskstore.Open("store", diskstore.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	cfg := node.Config{
		Name: "one", Genesis: g, Identity: keys[0], Anchor: &keys[1], Store: disk, Listen: []string{"/ip4/127.0.0.1/tcp/0"},
	}
	for _, c := range change {
		c(&cfg)
	}
	n, err := node.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n, disk
}

func newWorldUnder(t *testing.T, policy scope.Policy, change ...func(*node.Config)) *world {
	t.Helper()
	n, disk := newNode(t, policy, change...)
	s, err := api.Listen("127.0.0.1:0", api.Config{Node: n})
	if err != nil {
		t.Fatal(err)
	}
	served, run := make(chan error, 1), make(chan error, 1)
	serveCtx, stopServing := context.WithCancel(context.Background())
	runCtx, stopRunning := context.WithCancel(context.Background())
	go func() { served <- s.Run(serveCtx) }()
	go func() { run <- n.Run(runCtx) }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: h2}
	t.Cleanup(func() {
		cancel()
		transport.CloseIdleConnections() // else they get a second to end
		stopServing()
		err := <-served
		stopRunning()
		if err := errors.Join(err, <-run, disk.Close()); err != nil {
			t.Error(err)
		}
	})
	return &world{
		NodeClient: aweighv1connect.NewNodeClient(&http.Client{Transport: transport}, "http://"+s.Addr()),
		genesis:    n.Root().Genesis(), address: s.Addr(), ctx: ctx,
	}
}

func (w *world) put(t *testing.T, key, value string) *aweighv1.PutResponse {
	t.Helper()
	resp, err := w.Put(w.ctx, connect.NewRequest(&aweighv1.PutRequest{Key: []byte(key), Value: []byte(value), PrevKv: true}))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Msg
}

func TestWhatWasPutIsRead(t *testing.T) {
	w := newWorld(t)
	first := w.put(t, "/a", "1")
	second := w.put(t, "/a", "2")
	if second.Header.Revision != first.Header.Revision+1 || string(second.PrevKv.Value) != "1" || second.Uid != first.Uid {
		t.Errorf("after %v came %v", first, second)
	}
	for _, serializable := range []bool{false, true} {
		resp, err := w.Range(w.ctx, connect.NewRequest(&aweighv1.RangeRequest{Key: []byte("/a"), Serializable: serializable}))
		if err != nil {
			t.Fatal(err)
		}
		if kv := resp.Msg.Kvs[0]; string(kv.Value) != "2" || kv.Version != 2 || resp.Msg.Header.Linearizable == serializable {
			t.Errorf("read %v", resp.Msg)
		}
	}
	del, err := w.Delete(w.ctx, connect.NewRequest(&aweighv1.DeleteRequest{Key: []byte("/"), RangeEnd: []byte("0"), PrevKv: true}))
	if err != nil || del.Msg.Deleted != 1 || string(del.Msg.PrevKvs[0].Value) != "2" {
		t.Errorf("deleted %v, %v", del, err)
	}
}

func TestRepeatedRequestsApplyOnce(t *testing.T) {
	w := newWorld(t)
	once := &aweighv1.Once{Nonce: bytes.Repeat([]byte{7}, 16), ValidUntilNs: time.Now().Add(time.Minute).UnixNano()}
	var revisions []int64
	for range 2 {
		resp, err := w.Put(w.ctx, connect.NewRequest(&aweighv1.PutRequest{Key: []byte("/a"), Once: once}))
		if err != nil {
			t.Fatal(err)
		}
		if again := len(revisions) > 0; resp.Msg.Repeated != again {
			t.Errorf("repeated is %v, want %v", resp.Msg.Repeated, again)
		}
		revisions = append(revisions, resp.Msg.Header.Revision)
	}
	once.Nonce = bytes.Repeat([]byte{8}, 16)
	for _, again := range []bool{false, true} {
		resp, err := w.Delete(w.ctx, connect.NewRequest(&aweighv1.DeleteRequest{Key: []byte("/a"), Once: once}))
		if err != nil || resp.Msg.Repeated != again || (resp.Msg.Deleted == 1) == again {
			t.Errorf("deleted %v, %v; want repeated %v", resp, err, again)
		}
	}
	once.Nonce = bytes.Repeat([]byte{9}, 16)
	for _, again := range []bool{false, true} {
		resp, err := w.Txn(w.ctx, connect.NewRequest(&aweighv1.TxnRequest{
			Success: []*aweighv1.Op{{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: []byte("/b")}}}}, Once: once,
		}))
		if err != nil || resp.Msg.Repeated != again || !resp.Msg.Succeeded || (len(resp.Msg.Responses) == 1) == again {
			t.Errorf("transaction %v, %v; want repeated %v", resp, err, again)
		}
	}
	if revisions[0] != revisions[1] {
		t.Errorf("applied twice: revisions %v", revisions)
	}
}

func TestTransactionsChooseTheirBranch(t *testing.T) {
	w := newWorld(t)
	txn := &aweighv1.TxnRequest{
		Compare: []*aweighv1.Compare{{
			Target: aweighv1.Compare_TARGET_VERSION, Relation: aweighv1.Compare_RELATION_EQUAL, Key: []byte("/lock"),
		}},
		Success: []*aweighv1.Op{
			{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: []byte("/lock"), Value: []byte("mine")}}},
			{Op: &aweighv1.Op_Txn{Txn: &aweighv1.TxnRequest{Success: []*aweighv1.Op{
				{Op: &aweighv1.Op_Delete{Delete: &aweighv1.DeleteRequest{Key: []byte("/old")}}},
			}}}},
		},
		Failure: []*aweighv1.Op{{Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: []byte("/lock")}}}},
	}
	first, err := w.Txn(w.ctx, connect.NewRequest(txn))
	if err != nil || !first.Msg.Succeeded || first.Msg.Responses[1].GetTxn() == nil {
		t.Fatalf("first: %v, %v", first, err)
	}
	second, err := w.Txn(w.ctx, connect.NewRequest(txn))
	if err != nil || second.Msg.Succeeded || string(second.Msg.Responses[0].GetRange().Kvs[0].Value) != "mine" {
		t.Fatalf("second: %v, %v", second, err)
	}
	_, err = w.Txn(w.ctx, connect.NewRequest(&aweighv1.TxnRequest{Success: []*aweighv1.Op{{}}}))
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an operation that says nothing: %v", err)
	}
}

func TestBadRequestsAreTheCallersFault(t *testing.T) {
	w := newWorld(t)
	for name, err := range map[string]error{
		"no key":        second(w.Put(w.ctx, connect.NewRequest(&aweighv1.PutRequest{}))),
		"no key, range": second(w.Range(w.ctx, connect.NewRequest(&aweighv1.RangeRequest{}))),
		"bad bundle":    second(w.Submit(w.ctx, connect.NewRequest(&aweighv1.SubmitRequest{Bundle: []byte{1}}))),
		"short nonce":   second(w.Put(w.ctx, connect.NewRequest(&aweighv1.PutRequest{Key: []byte("/a"), Once: &aweighv1.Once{Nonce: []byte{1}}}))),
	} {
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := second(w.History(w.ctx, connect.NewRequest(&aweighv1.HistoryRequest{Key: []byte("/none")}))); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("history of nothing: %v", err)
	}
	if err := second(w.Range(w.ctx, connect.NewRequest(&aweighv1.RangeRequest{Key: []byte("/a"), Revision: 99}))); connect.CodeOf(err) != connect.CodeOutOfRange {
		t.Errorf("the future: %v", err)
	}
	if err := second(w.Put(w.ctx, connect.NewRequest(&aweighv1.PutRequest{Key: []byte("/a"), IgnoreValue: true}))); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("keeping what is not there: %v", err)
	}
	if err := second(w.Put(w.ctx, connect.NewRequest(&aweighv1.PutRequest{Key: []byte("/a"), Value: make([]byte, 5<<20)}))); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("more than a request may hold: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestWatchesSeeEveryChangeOnceInOrder(t *testing.T) {
	w := newWorld(t)
	w.put(t, "/w/1", "old")
	stream, err := w.Watch(w.ctx, connect.NewRequest(&aweighv1.WatchRequest{
		Key: []byte("/w/"), RangeEnd: []byte("/w0"), StartRevision: 1, PrevKv: true,
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if !stream.Receive() || !stream.Msg().Created {
		t.Fatalf("the first response is not the one that says so: %v, %v", stream.Msg(), stream.Err())
	}
	w.put(t, "/w/1", "new")
	w.put(t, "/x", "not watched")
	w.put(t, "/w/2", "more")
	var got []string
	for len(got) < 3 && stream.Receive() {
		for _, e := range stream.Msg().Events {
			got = append(got, string(e.PrevKv.GetValue())+">"+string(e.Kv.Value))
		}
	}
	if strings.Join(got, " ") != ">old old>new >more" {
		t.Errorf("saw %q, then %v", got, stream.Err())
	}
}

func TestProofsVerifyForWhoeverKnowsTheNetwork(t *testing.T) {
	w := newWorld(t)
	w.put(t, "/p", "1")
	put := w.put(t, "/p", "2") // the newest block: nothing covers it yet
	resp, err := w.Prove(w.ctx, connect.NewRequest(&aweighv1.ProveRequest{Key: []byte("/p")}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := scope.DecodeKeyProof(resp.Msg.Proof)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Verify(w.genesis.Hash())
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Kv.Value) != "2" || r.Entry.Revision != put.Header.Revision || len(r.Origin.Signers) != 1 || r.Head.Height <= r.Origin.Height {
		t.Errorf("proves %+v", r)
	}
	h, err := w.History(w.ctx, connect.NewRequest(&aweighv1.HistoryRequest{Key: []byte("/p"), Limit: 1}))
	if err != nil || len(h.Msg.Entries) != 1 || !h.Msg.More || h.Msg.Entries[0].AuthorName != "one" || h.Msg.Entries[0].Class != "update" {
		t.Errorf("history %v, %v", h, err)
	}
}

func TestDeletedKeysHaveHistoryAndProof(t *testing.T) {
	w := newWorld(t)
	w.put(t, "/p", "1")
	if err := second(w.Delete(w.ctx, connect.NewRequest(&aweighv1.DeleteRequest{Key: []byte("/p")}))); err != nil {
		t.Fatal(err)
	}
	h, err := w.History(w.ctx, connect.NewRequest(&aweighv1.HistoryRequest{Key: []byte("/p")}))
	if err != nil || len(h.Msg.Entries) != 2 || h.Msg.Entries[0].Class != "delete" {
		t.Fatalf("history %v, %v", h, err)
	}
	resp, err := w.Prove(w.ctx, connect.NewRequest(&aweighv1.ProveRequest{Key: []byte("/p")}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := scope.DecodeKeyProof(resp.Msg.Proof)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Verify(w.genesis.Hash()); err != nil || r.Kv != nil {
		t.Errorf("proves %+v, %v", r, err)
	}
}

func TestStatusInviteAndGenesisDescribeTheNetwork(t *testing.T) {
	w := newWorld(t)
	s, err := w.Status(w.ctx, connect.NewRequest(&aweighv1.StatusRequest{}))
	if err != nil || len(s.Msg.Anchors) != 1 || !s.Msg.Anchors[0].Self || s.Msg.FailuresLeft != 0 || s.Msg.NodeName != "one" {
		t.Errorf("status %v, %v", s, err)
	}
	i, err := w.Invite(w.ctx, connect.NewRequest(&aweighv1.InviteRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	if invite, err := node.ParseInvite(i.Msg.Invite); err != nil || invite.Network != w.genesis.Hash() {
		t.Errorf("invite %v, %v", invite, err)
	}
	g, err := w.Genesis(w.ctx, connect.NewRequest(&aweighv1.GenesisRequest{}))
	if err != nil || !bytes.Equal(g.Msg.Genesis, w.genesis.Encode()) {
		t.Errorf("genesis %v, %v", g, err)
	}
}

func TestPlainJSONWorks(t *testing.T) {
	w := newWorld(t)
	post := func(method, body string) string {
		t.Helper()
		resp, err := http.Post("http://"+w.address+"/aweigh.v1.Node/"+method, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := post("Put", `{"key":"L2E=","value":"YQ=="}`); !strings.Contains(got, `"revision"`) {
		t.Errorf("put: %s", got)
	}
	if got := post("Range", `{"key":"L2E="}`); !strings.Contains(got, `"value":"YQ=="`) {
		t.Errorf("range: %s", got)
	}
	for _, c := range [][2]string{
		{"Range", `{"key":"L2E=","limit":-1}`}, {"Range", `{"key":"L2E=","revision":-1}`}, {"History", `{"key":"L2E=","limit":-1}`},
	} {
		if got := post(c[0], c[1]); !strings.Contains(got, `"code":"invalid_argument"`) {
			t.Errorf("%s %s: %s", c[0], c[1], got)
		}
	}
	if got := post("Range", `{}`); !strings.Contains(got, `"code":"invalid_argument"`) {
		t.Errorf("no key: %s", got)
	}
}

func TestAddressesOfTheAPIAreChecked(t *testing.T) {
	for _, address := range []string{"nonsense", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1"} {
		if s, err := api.Listen(address, api.Config{}); !errors.Is(err, api.ErrAddress) {
			t.Errorf("%s: %v, %v", address, s, err)
		}
	}
	n, disk := newNode(t, scope.OpenPolicy(quorum.BFT))
	s, err := api.Listen("0.0.0.0:0", api.Config{Node: n})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), n.Close(), disk.Close()); err != nil {
		t.Error(err)
	}
}

// TestAnswersToWritesNameTheirEpoch: in epochs of one block, every write has another.
func TestAnswersToWritesNameTheirEpoch(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.EpochBlocks = 1
	w := newWorldUnder(t, p)
	var last uint64
	for i := range 3 {
		h := w.put(t, "/a", fmt.Sprint(i)).Header
		if i > 0 && h.Epoch <= last || h.Epoch > h.Height {
			t.Errorf("write %d: epoch %d after %d, height %d", i, h.Epoch, last, h.Height)
		}
		last = h.Epoch
	}
	del, err := w.Delete(w.ctx, connect.NewRequest(&aweighv1.DeleteRequest{Key: []byte("/a")}))
	if err != nil || del.Msg.Header.Epoch <= last {
		t.Errorf("a deletion in epoch %d after %d, %v", del.Msg.GetHeader().GetEpoch(), last, err)
	}
}
