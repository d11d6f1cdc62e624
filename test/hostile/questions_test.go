package hostile

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Ask sends one request, and returns the first byte of the answer and how long the
// rest is: 0 if it is answered, 1 if it is refused, 2 if the node is busy.
func (p *Peer) Ask(ctx context.Context, to peer.ID, req []byte) (status byte, size int, err error) {
	s, err := p.Open(ctx, to, "pull")
	if err != nil {
		return 0, 0, err
	}
	defer s.Reset()
	if err := s.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return 0, 0, err
	}
	if err := Write(s, Frame(req), 5*time.Second); err != nil {
		return 0, 0, err
	}
	r := bufio.NewReader(s)
	if status, err = r.ReadByte(); err != nil || status == 2 {
		return status, 0, err
	}
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return status, 0, err
	}
	read, err := io.CopyN(io.Discard, r, int64(n))
	return status, int(read), err
}

// TestQuestionsOfNonMembersLeaveHonestClientsTheirShare: non-members ask what a transaction
// would find that reads all that it may, again and again, at all nodes. They are told to
// wait, and honest clients write meanwhile.
func TestQuestionsOfNonMembersLeaveHonestClientsTheirShare(t *testing.T) {
	testshort.SkipUnlessLong(t)
	x := newNetwork(t, 4)
	x.fill(t, "/dear/", 2000)
	calm := x.swaps(5)
	before := inUse()
	var all scope.Txn
	for range 9 {
		all.Success = append(all.Success, scope.Op{Kind: scope.OpRange, Key: []byte("/dear/"), End: []byte("/dear0")})
	}
	ask := referral.Question{Kind: referral.AskLook, Body: canon.Encode(all)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told [3]atomic.Int64
	var cut atomic.Int64
	var asking sync.WaitGroup
	for i := range x.daemons {
		for range 4 {
			p, to := x.attacker(t, i)
			for range 4 {
				asking.Go(func() {
					for ctx.Err() == nil && p.Connected(to) {
						status, _, err := p.Ask(ctx, to, slices.Concat([]byte("foreign/1"), canon.Encode(ask)))
						if err != nil || int(status) >= len(told) {
							cut.Add(1)
							time.Sleep(10 * time.Millisecond) // the pace of an attacker that is refused
							continue
						}
						told[status].Add(1)
					}
				})
			}
		}
	}
	testwait.Until(t, "questions are asked", func() bool { return told[0].Load()+told[1].Load()+told[2].Load() > 50 })
	l := x.swaps(10 * longer())
	held := inUse()
	cancel()
	asking.Wait()
	t.Logf("%d answered, %d refused, %d told to wait, %d cut; %d of %d swaps succeed, in %v in the median, in %v without; %d MiB more",
		told[0].Load(), told[1].Load(), told[2].Load(), cut.Load(), l.done, l.done+l.failed, l.median, calm.median, (int64(held)-int64(before))>>20)
	if l.failed > 0 || l.median > 20*calm.median+time.Second {
		t.Errorf("%d of %d swaps succeed, in %v in the median, and in %v without questions: %s", l.done, l.done+l.failed, l.median, calm.median, l.why)
	}
	if told[0].Load() == 0 {
		t.Error("no question was answered: the attack does not get through to what it is about")
	}
	if held > before+heapBound {
		t.Errorf("%d MiB of heap in use, and %d before", held>>20, before>>20)
	}
	x.commits(t)
}

// TestWatchesOfHistoryAreBounded: watches ask for all of a history of large values, with
// what each replaced, and do not read it. The node holds no more than its bound.
func TestWatchesOfHistoryAreBounded(t *testing.T) {
	testshort.SkipUnlessLong(t)
	x := newNetwork(t, 4)
	value := strings.Repeat("h", 1<<20)
	for i := range 32 * longer() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		r, err := x.node(0).Txn(ctx, put(fmt.Sprintf("/large/%d", i%2), value), node.Once{})
		cancel()
		if err != nil || r.Code != scope.Applied {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	before := inUse()
	request, _ := watching(t, "Watch", &aweighv1.WatchRequest{Key: []byte("/large/"), RangeEnd: []byte("/large0"), StartRevision: 1, PrevKv: true})
	all := x.api(0).idle(t, 24, request)
	var most uint64
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) { // the time that is measured
		most = max(most, inUse())
	}
	x.answers(t)
	t.Logf("%d watches of a history of %d MiB: %d MiB of heap at most, %d before", len(all), 32*longer(), most>>20, before>>20)
	if most > before+heapBound {
		t.Errorf("%d watches that read nothing hold %d MiB of heap, and %d were in use before", len(all), most>>20, before>>20)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	x.answers(t)
}
