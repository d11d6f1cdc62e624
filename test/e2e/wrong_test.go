package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/p2p"
)

// TestWrongInput: nothing that non-members send to a node's ports stops it, or
// the network.
func TestWrongInput(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	victim := n.nodes[0]
	pids := make([]int, len(n.nodes))
	for i, p := range n.nodes {
		pids[i] = p.pid()
	}
	writes := 0
	alive := func(t *testing.T) {
		t.Helper()
		for i := range n.nodes {
			writes++
			if _, err := n.dial(i).Put(within(t, 10*time.Second), putOf("/alive", fmt.Sprint(writes))); err != nil {
				t.Errorf("%s: %v", n.nodes[i].name, err)
			}
		}
	}

	t.Run("bytes to the ports", func(t *testing.T) {
		for _, address := range []string{victim.p2p, victim.api} {
			for i, text := range nonsense(t) {
				throw(t, address, text)
				if i%4 == 0 {
					alive(t)
				}
			}
		}
	})
	t.Run("connections that say nothing", func(t *testing.T) {
		for _, address := range []string{victim.p2p, victim.api} {
			for range 200 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
			}
		}
		alive(t)
	})
	t.Run("requests", func(t *testing.T) {
		wrongRequests(t, victim.api)
		alive(t)
	})
	t.Run("a peer", func(t *testing.T) {
		wrongPeer(t, victim)
		alive(t)
	})

	state := n.agreed(20 * time.Second)
	for i, p := range n.nodes {
		if !p.runs() || p.pid() != pids[i] {
			t.Errorf("%s stopped", p.name)
		}
	}
	c := n.dial(1)
	all, err := changes(within(t, 10*time.Second), c, state.Header.Revision)
	if err != nil || len(all) != writes {
		t.Errorf("%d changes (%v), want the %d that were asked for", len(all), err, writes)
	}
	s, err := victim.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s refused %d frames, %d writes went through", victim.name, s.Dropped, writes)
	if s.Dropped == 0 {
		t.Error("no frame was refused")
	}
	if len(s.Faulty) > 0 {
		t.Errorf("anchors are blamed: %x", s.Faulty)
	}
}

// noiseOf are bytes of a stream of the seed.
func noiseOf(t *testing.T, stream uint64, size int) []byte {
	t.Helper()
	var b []byte
	for random := drawn(t, stream); len(b) < size; {
		b = binary.LittleEndian.AppendUint64(b, random.Uint64())
	}
	return b[:size]
}

// nonsense is what to say to a port.
func nonsense(t *testing.T) [][]byte {
	noise := noiseOf(t, 11, 1<<20)
	return [][]byte{
		nil, {0}, noise[:100], noise, bytes.Repeat([]byte{0xff}, 1<<20), make([]byte, 1<<20),
		[]byte("GET / HTTP/1.1\r\n\r\n"),
		[]byte("GET " + strings.Repeat("/a", 100_000) + " HTTP/1.1\r\nHost: x\r\n\r\n"),
		[]byte("POST /aweigh.v1.Node/Put HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nContent-Length: 99999999999\r\n\r\nabc"),
		[]byte("POST /aweigh.v1.Node/Put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
		append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), noise[:5000]...),
		append([]byte("\x13/multistream/1.0.0\n\x07/noise\n"), noise[:5000]...),
		append([]byte("\x13/multistream/1.0.0\n"), bytes.Repeat([]byte{0xff}, 5000)...),
	}
}

// throw sends bytes to an address, and looks at what comes back, but not for long.
func throw(t *testing.T, address string, text []byte) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Errorf("%s takes no connection: %v", address, err)
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = c.Write(text) // the other end may well close in the middle
	_, _ = io.Copy(io.Discard, c)
}

// wrongRequests makes requests that parse as HTTP, but not as anything else, or
// are out of limits.
func wrongRequests(t *testing.T, api string) {
	noise := noiseOf(t, 12, 5<<20)
	for _, method := range []string{"Put", "Range", "Txn", "Submit", "Watch", "Compact", "Delete", "History", "Prove", "Nothing"} {
		for _, kind := range []string{"application/proto", "application/json", "application/grpc", "application/connect+proto", "text/plain"} {
			for _, body := range [][]byte{nil, noise[:200], noise, []byte(`{"key":`), []byte(`{"key":1}`), {0, 255, 255, 255, 255}} {
				ctx := within(t, 5*time.Second)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+api+"/aweigh.v1.Node/"+method, bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", kind)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					continue // it may close the connection on a body that it does not want
				}
				_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
				_ = resp.Body.Close()
			}
		}
	}
	c, err := client.Dial(api)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, req := range map[string]*aweighv1.PutRequest{
		"no key":                  {Value: []byte("v")},
		"a value of 2 MiB":        {Key: []byte("/k"), Value: make([]byte, 2<<20)},
		"a key of 1 MiB":          {Key: make([]byte, 1<<20)},
		"a lease nobody granted":  {Key: []byte("/k"), Lease: 7},
		"a nonce of one byte":     {Key: []byte("/k"), Once: &aweighv1.Once{Nonce: []byte{1}}},
		"valid until long ago":    {Key: []byte("/k"), Once: &aweighv1.Once{ValidUntilNs: 1}},
		"valid for ever":          {Key: []byte("/k"), Once: &aweighv1.Once{ValidUntilNs: 1<<63 - 1}},
		"a negative time":         {Key: []byte("/k"), Once: &aweighv1.Once{ValidUntilNs: -1}},
		"a justification too big": {Key: []byte("/k"), Once: &aweighv1.Once{Justification: strings.Repeat("a", 2<<20)}},
	} {
		began := time.Now()
		_, err := c.Put(within(t, 10*time.Second), req)
		if !errors.Is(err, client.ErrInvalid) && !errors.Is(err, client.ErrExpired) && !errors.Is(err, client.ErrFailed) {
			t.Errorf("%s: %v after %s, want to hear at once that it is invalid or failed", name, err, time.Since(began))
		}
	}
	if _, err := c.Put(within(t, 10*time.Second), &aweighv1.PutRequest{Key: []byte("/k"), Value: make([]byte, 5<<20)}); err == nil {
		t.Error("a request of 5 MiB was taken")
	}
}

// wrongPeer connects as a node of the network that talks nonsense: frames that
// are noise, frames longer than any may be, requests, and gossip.
func wrongPeer(t *testing.T, victim *process) {
	s, err := victim.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var id aweigh.NetworkID
	copy(id[:], s.Header.Network)
	address := ""
	for _, a := range s.Addresses {
		if strings.Contains(a, "/tcp/") {
			address = a
		}
	}
	peers, err := p2p.ParsePeers([]string{address})
	if err != nil {
		t.Fatal(err)
	}
	target := peers[0].ID
	noise := noiseOf(t, 13, 12<<20)

	for round, frame := range slices.Concat([][]byte{nil, {0}, noise[:1], noise[:64], noise[:1<<20], noise}, tagged(noise[:256])) {
		h := nonMember(t, id, peers)
		if !connected(h, target) {
			// After enough of them non-members from their address are refused for a while.
			if round < 16 {
				t.Fatalf("round %d: the non-member is not let in", round)
			}
			t.Logf("no non-members from here after %d of them", round)
			return
		}
		for range 20 {
			h.Send(target, frame)
		}
		if err := h.Publish(p2p.Topic("final/"+hex.EncodeToString(id[:])), frame[:min(len(frame), 1<<20)]); err != nil {
			t.Logf("gossip: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, _ = h.Request(ctx, target, frame[:min(len(frame), 1<<20)], 1<<20)
		cancel()
		if err := h.Close(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

// tagged are frames that begin like those of every kind, and go on as noise.
func tagged(noise []byte) (frames [][]byte) {
	for tag := range 32 {
		frames = append(frames, append([]byte{byte(tag)}, noise...), []byte{byte(tag)})
	}
	return frames
}

// nonMember is a host of the network that is no anchor. It may send longer
// frames than others take.
func nonMember(t *testing.T, id aweigh.NetworkID, peers []peer.AddrInfo) *p2p.Host {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2p.New(p2p.Config{
		Key: key, Network: id, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: peers, MaxFrame: 64 << 20, QueueBytes: 1 << 30,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	if err := h.Join(p2p.Topic("final/" + hex.EncodeToString(id[:]))); err != nil {
		t.Fatal(err)
	}
	return h
}

// connected waits until a host has a peer, for a moment.
func connected(h *p2p.Host, id peer.ID) bool {
	return eventually(8*time.Second, func(context.Context) error {
		for _, p := range h.Peers() {
			if p.ID == id {
				return nil
			}
		}
		return errors.New("it is not")
	}) == nil
}
