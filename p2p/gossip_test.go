package p2p

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/testwait"
)

// listener counts gossip and gives one verdict, save for probes.
type listener struct {
	heard, probes atomic.Int64
	bad           atomic.Int64 // of those received, the message "bad"
	verdict       atomic.Uint32
}

func (l *listener) gossip(_ peer.ID, _ Topic, data []byte) Verdict {
	if bytes.HasPrefix(data, []byte("probe")) {
		l.probes.Add(1)
		return Accept
	}
	if l.heard.Add(1); string(data) == "bad" {
		l.bad.Add(1)
	}
	return Verdict(l.verdict.Load())
}

// chain starts hosts of which each knows only the next, all in one topic.
func chain(t *testing.T, listeners []*listener, topics []Topic) []*Host {
	t.Helper()
	var hosts []*Host
	for i, l := range listeners {
		h := start(t, func(c *Config) { c.Target = 1; c.Handler.Gossip = l.gossip })
		if err := h.Join(topics[i]); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	for i := range hosts[1:] {
		hosts[i].SetMembers([]peer.ID{hosts[i+1].ID()})
		join(t, hosts[i], hosts[i+1])
	}
	// gossipsub passes on what it receives only once it has built its mesh.
	last := len(hosts) - 1
	publish(t, hosts[0], topics[last], "probe", "a probe comes through", func() bool { return listeners[last].probes.Load() > 0 })
	return hosts
}

// publish repeats a message, numbered, until ok holds: gossip may drop any one.
// It repeats seldom, or its messages would use up the budgets of later ones.
func publish(t *testing.T, h *Host, topic Topic, text, what string, ok func() bool) {
	t.Helper()
	again, n := time.Now(), 0
	testwait.Until(t, what, func() bool {
		if now := time.Now(); !now.Before(again) {
			n, again = n+1, now.Add(200*time.Millisecond)
			if err := h.Publish(topic, fmt.Appendf(nil, "%s %d", text, n)); err != nil {
				t.Fatal(err)
			}
		}
		return ok()
	})
}

func listenersOf(n int) []*listener {
	ls := make([]*listener, n)
	for i := range ls {
		ls[i] = &listener{}
	}
	return ls
}

func TestGossipReachesAllAndOnce(t *testing.T) {
	t.Parallel()
	ls := listenersOf(5)
	hosts := chain(t, ls, []Topic{"t", "t", "t", "t", "t"})
	const n = 20
	for i := range n {
		if err := hosts[i%2].Publish("t", fmt.Appendf(nil, "message %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range ls {
		want := int64(n)
		if i < 2 {
			want = n / 2 // its own do not come back
		}
		testwait.Until(t, fmt.Sprintf("host %d hears %d", i, want), func() bool { return l.heard.Load() == want })
	}
	// The same bytes again are not news.
	if err := hosts[0].Publish("t", []byte("message 0")); err != nil {
		t.Fatal(err)
	}
	if got := ls[4].heard.Load(); got != n {
		t.Errorf("heard %d of %d messages", got, n)
	}
}

func TestTopicsOfOneBucketCarryEachOther(t *testing.T) {
	t.Parallel()
	other := Topic("")
	for i := 0; other == ""; i++ {
		if name := Topic(fmt.Sprint("other ", i)); bucket(name) == bucket("t") {
			other = name
		}
	}
	ls := listenersOf(3)
	hosts := chain(t, ls, []Topic{"t", other, "t"})
	publish(t, hosts[0], "t", "hello", "the far end hears", func() bool { return ls[2].heard.Load() > 0 })
	if ls[1].heard.Load() != 0 || hosts[1].Stats().GossipRelayed == 0 {
		t.Errorf("the host between: %+v", hosts[1].Stats())
	}
}

func TestVerdictStopsAMessage(t *testing.T) {
	t.Parallel()
	for _, verdict := range []Verdict{Ignore, Reject} {
		ls := listenersOf(3)
		hosts := chain(t, ls, []Topic{"t", "t", "t"})
		ls[1].verdict.Store(uint32(verdict))
		if err := hosts[0].Publish("t", []byte("bad")); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "the verdict is counted", func() bool {
			s := hosts[1].Stats()
			return s.GossipIgnored+s.GossipRejected == 1
		})
		// What follows in order proves that the first was not merely slow.
		ls[1].verdict.Store(uint32(Accept))
		publish(t, hosts[0], "t", "good", "a good message passes", func() bool { return ls[2].heard.Load() > 0 })
		if ls[2].bad.Load() > 0 {
			t.Errorf("the message passed against the verdict %d", verdict)
		}
	}
}

func TestTopicsAreCheckedJoinedAndLeft(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.MaxGossip = 1000 })
	for _, bad := range []Topic{"", Topic(make([]byte, maxTopic+1))} {
		if h.Join(bad) == nil || h.Publish(bad, nil) == nil {
			t.Errorf("topic of %d bytes was accepted", len(bad))
		}
	}
	if h.Publish("t", make([]byte, 1000)) == nil {
		t.Error("gossip above the limit was accepted")
	}
	for range 2 {
		if err := h.Join("t", "u", "t"); err != nil {
			t.Fatal(err)
		}
	}
	h.Leave("t", "u", "v", "t")
	for b, n := range h.gossip.members {
		if n != 0 || h.gossip.cancels[b] != nil {
			t.Errorf("bucket %d is still joined %d times", b, n)
		}
	}
}
