package node

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Budgets are in microseconds of one processor, by estimate and not by the
// clock, so that a busy machine refuses nobody. An Ed25519 signature takes 46 µs
// to verify.
const (
	frameCost     = 10 // decoding, and the machine's part
	signatureCost = 50
	mutationCost  = 5     // to decode and execute a small mutation
	mutationBytes = 200   // of it, in a bundle
	bytesUnread   = 128   // per µs: to receive what is then passed over
	blockRead     = 72    // bytes per µs, of blocks read for a peer
	mostRead      = 2_250 // µs, for one answer

	anchorWork   = 500_000 // per second, of one anchor, whose clients may write 20,000 mutations in it; bursts of a second
	anchorVotes  = 100_000 // per second, for ballots, proposals and announcements, of which a view takes 250; bursts of a second
	anchorTalk   = 25_000  // per second, for its offers; bursts of four seconds
	strangerWork = 10_000  // per second, of one other peer; bursts of two seconds
	nearWork     = 40_000  // per second, of one who is an anchor in another scope, and follows this one; likewise
	allStrangers = 25_000  // per second, of all others together; bursts of a second

	// allNeighbours is what anchors of other scopes may spend together in those where
	// they are none, per second; bursts of a second. They follow those, and pass on what
	// their clients write there.
	allNeighbours = 100_000

	anchorBytes   = 32 << 20 // per second, of blocks and ballots that one anchor is given when it asks; bursts of two seconds
	strangerBytes = 16 << 20 // and another peer; bursts of two seconds
)

// maxAccounts bounds the peers that are remembered.
const maxAccounts = 4096

// accounts hold what each peer makes this node spend. Those above their budget
// wait before they are heard.
type accounts struct {
	roll *roll
	*strangers

	mu    sync.Mutex
	peers map[Peer]*account
}

// strangers is what all that are no anchors share, in all scopes of a node.
type strangers struct {
	limiter    *rate.Limiter
	neighbours *rate.Limiter                      // of those who are anchors in another scope
	homes      atomic.Pointer[map[Peer]*accounts] // of a scope where a peer is an anchor, of each that is one anywhere
	turn       sync.Mutex                         // held while something of theirs is verified: one processor is enough
}

func newStrangers() *strangers {
	s := &strangers{limiter: rate.NewLimiter(allStrangers, allStrangers), neighbours: rate.NewLimiter(allNeighbours, allNeighbours)}
	s.homes.Store(new(map[Peer]*accounts))
	return s
}

// home is the accounts of a scope where a peer is an anchor, nil if it is none anywhere.
func (s *strangers) home(p Peer) *accounts { return (*s.homes.Load())[p] }

// shared is what a peer that is no anchor shares with others.
func (s *strangers) shared(p Peer) *rate.Limiter {
	if s.home(p) != nil {
		return s.neighbours
	}
	return s.limiter
}

type account struct {
	anchor bool
	work   *rate.Limiter // µs
	votes  *rate.Limiter // µs, of an anchor
	talk   *rate.Limiter // µs
	given  *rate.Limiter // bytes; in debt after a large answer
}

// untouched reports whether an account is as good as none.
func (x *account) untouched() bool {
	for _, l := range []*rate.Limiter{x.work, x.votes, x.talk, x.given} {
		if l.Tokens() < float64(l.Burst()) {
			return false
		}
	}
	return true
}

func newAccounts(roll *roll, s *strangers) *accounts { return &accounts{roll: roll, strangers: s} }

// rest forgets the accounts of which nothing has been spent that is not earned again.
func (a *accounts) rest() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p, x := range a.peers {
		if x.untouched() {
			delete(a.peers, p)
		}
	}
	if len(a.peers) == 0 {
		a.peers = nil
	}
}

func (a *accounts) anchor(p Peer) bool {
	_, ok := a.roll.anchor(p)
	return ok
}

// reseat forgets the accounts of those who gained or lost a seat.
func (a *accounts) reseat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p, x := range a.peers {
		if x.anchor != a.anchor(p) {
			delete(a.peers, p)
		}
	}
}

// of is the account of a peer, which outlives its connections: to come again is
// no way to get a new one.
func (a *accounts) of(p Peer) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.peers[p]; x != nil {
		return x
	}
	if len(a.peers) >= maxAccounts {
		for other, x := range a.peers {
			if x.work.Tokens() >= float64(x.work.Burst()) && x.given.Tokens() >= float64(x.given.Burst()) {
				delete(a.peers, other)
			}
		}
		if len(a.peers) >= maxAccounts { // they share one budget in any case
			clear(a.peers)
		}
	}
	x := &account{
		work:  rate.NewLimiter(strangerWork, 2*strangerWork),
		votes: rate.NewLimiter(strangerWork, 2*strangerWork),
		talk:  rate.NewLimiter(strangerWork, 2*strangerWork),
		given: rate.NewLimiter(strangerBytes, 2*strangerBytes),
	}
	if a.anchor(p) {
		x = &account{
			anchor: true,
			work:   rate.NewLimiter(anchorWork, anchorWork),
			votes:  rate.NewLimiter(anchorVotes, anchorVotes),
			talk:   rate.NewLimiter(anchorTalk, 4*anchorTalk),
			given:  rate.NewLimiter(anchorBytes, 2*anchorBytes),
		}
	}
	if !x.anchor && a.home(p) != nil {
		x.work = rate.NewLimiter(nearWork, 2*nearWork)
	}
	if a.peers == nil {
		a.peers = make(map[Peer]*account)
	}
	a.peers[p] = x
	return x
}

// wait is for how long a frame of a peer must wait. It is charged; but a neighbour's, which
// is dropped instead of waiting, only if it need not wait: what is dropped leaves no debt.
func (a *accounts) wait(p Peer, f []byte) time.Duration {
	return a.charge(p, f, a.cost(f, a.anchor(p)))
}

// charge is wait for a frame that makes so much work.
func (a *accounts) charge(p Peer, f []byte, work int) time.Duration {
	x, anchor, now := a.of(p), a.anchor(p), time.Now()
	if isOffer(f) {
		return 0 // see hear
	}
	lim := x.work
	if anchor && isVote(f) { // no honest anchor needs as much for them as for what its clients write
		lim = x.votes
	}
	var d time.Duration
	switch {
	case anchor:
		d = reserve(lim, now, work)
	case a.home(p) == nil:
		d = max(reserve(lim, now, work), reserve(a.limiter, now, work))
	case !lim.AllowN(now, min(work, lim.Burst())) || !a.neighbours.AllowN(now, min(work, a.neighbours.Burst())):
		return time.Second
	}
	if isQuestion(f) {
		d = max(d, reserve(x.given, now, 0))
	}
	return d
}

// looks is for how long a peer must wait that makes all nodes do so many units of work, no more than
// its burst.
func (a *accounts) looks(p Peer, units int) time.Duration {
	x, now := a.of(p), time.Now()
	d := reserve(x.work, now, units)
	if !a.anchor(p) {
		d = max(d, reserve(a.shared(p), now, units))
	}
	return d
}

// neighbourLooks is looks for an anchor of another scope: false refuses, and leaves no debt.
func (a *accounts) neighbourLooks(p Peer, units int64) bool {
	x, now := a.of(p), time.Now()
	if units == 0 {
		return true
	}
	return units <= int64(min(x.work.Burst(), a.neighbours.Burst())) && x.work.AllowN(now, int(units)) && a.neighbours.AllowN(now, int(units))
}

// affordLooks is looks for gossip, whose receivers must not wait: false refuses. It is charged to
// strangers, as in afford.
func (a *accounts) affordLooks(p Peer, b *scope.CheckedBundle) bool {
	all, units := a.shared(p), b.Looks()
	return units == 0 || units <= int64(all.Burst()) && all.AllowN(time.Now(), int(units))
}

// hear reports whether a peer may make an offer now. Offers are repeated, and long
// when things go badly, so those above the budget are passed over: to wait for it
// would hold up the ballots behind them. See passed for those who do it on purpose.
func (a *accounts) hear(p Peer, f []byte) bool {
	if !isOffer(f) {
		return true
	}
	x, anchor, now := a.of(p), a.anchor(p), time.Now()
	work := a.cost(f, anchor)
	if !x.talk.AllowN(now, min(work, x.talk.Burst())) {
		return false
	}
	if anchor {
		return true
	}
	all := a.shared(p)
	return all.AllowN(now, min(work, all.Burst()))
}

// passed is for how long to wait after a frame that was not heard: to receive it was
// work, too. Who is an anchor in another scope pays there: were it to wait for what others
// spend, what it sends as an anchor would wait behind this.
func (a *accounts) passed(p Peer, f []byte) time.Duration {
	x, now, work := a.of(p), time.Now(), frameCost+len(f)/bytesUnread
	if a.anchor(p) {
		return reserve(x.votes, now, work)
	}
	if home := a.home(p); home != nil {
		return reserve(home.of(p).votes, now, work)
	}
	return max(reserve(x.work, now, work), reserve(a.limiter, now, work))
}

// afford is wait for gossip, whose receivers must not wait: false refuses. Whoever
// passes a bundle on need not be who floods, so all are charged to strangers.
func (a *accounts) afford(p Peer, f []byte) bool {
	now, stranger := time.Now(), !a.anchor(p)
	if len(f) > 0 && f[0] == tagBundle {
		stranger = true
	}
	work := a.cost(f, !stranger)
	if stranger {
		all := a.shared(p)
		return all.AllowN(now, min(work, all.Burst()))
	}
	x := a.of(p)
	return x.work.AllowN(now, min(work, x.work.Burst()))
}

// check is c.Check, for one stranger at a time.
func (a *accounts) check(c *Checker, p Peer, f []byte) (Message, error) {
	if !a.anchor(p) {
		a.turn.Lock()
		defer a.turn.Unlock()
	}
	return c.Check(p, f)
}

// gave charges a peer for an answer.
func (a *accounts) gave(p Peer, f []byte) {
	if isAnswer(f) {
		reserve(a.of(p).given, time.Now(), len(f))
	}
	if isBlocks(f) {
		a.read(p, min(len(f)/blockRead, mostRead))
	}
}

// read charges a peer for blocks that were read for it. A peer that follows a scope asks for each of its blocks.
func (a *accounts) read(p Peer, work int) {
	now := time.Now()
	reserve(a.of(p).work, now, work)
	if !a.anchor(p) {
		reserve(a.shared(p), now, work)
	}
}

// reserve takes n, or as much as fits in a burst, and returns how long to wait.
func reserve(l *rate.Limiter, now time.Time, n int) time.Duration {
	return l.ReserveN(now, min(n, l.Burst())).DelayFrom(now)
}

// cost estimates what a frame makes this node do, before anything is done. A
// stranger's bundle costs several signatures: each anchor may be sent others, and
// all verify all that one of them proposes.
func (a *accounts) cost(f []byte, anchor bool) int {
	if len(f) == 0 {
		return frameCost
	}
	signatures := 0
	switch f[0] {
	case tagBundle:
		if signatures = 1; !anchor {
			return frameCost + min(a.roll.seats(), 8)*signatureCost + len(f)/mutationBytes*mutationCost
		}
	case tagAsk: // its answer is at hand
		return 2 * frameCost
	case tagBallot:
		signatures = 1
	case tagCast:
		signatures = 1 + len(f)/256
	case tagMeet:
		signatures = 10 + len(f)/256 // some hundred ballots may be read for the answer
	case tagCatchUp:
		signatures = 5 // and what is given is charged when it is known: see gave
	case tagWant:
		signatures = 1 + len(f)/512 // 16 names
	case tagProposal:
		signatures = 2 // its certificates are looked at until one is bad
	case tagOffer:
		signatures = 1
		if anchor { // others' votes are not looked at
			signatures += len(f) / 128
		}
	case tagAnnounce, tagAnswer:
		signatures = 1 + len(f)/128
	case tagBlock:
		signatures = 1 + len(f)/4096
	}
	return frameCost + signatures*signatureCost
}

// workOf is what a peer's frame costs. Answers to a linearizable read that were asked for are no flood, however many
// there are, and of one round at most one is looked at.
func (n *Part) workOf(p Peer, f []byte) int {
	if isPledge(f) && n.pledges.take(p) {
		return frameCost
	}
	return n.budgets.cost(f, n.budgets.anchor(p))
}

// distant reports whether a frame is a ballot that the engine would not look at,
// because its view is far ahead: it need not be verified. One that claims to be
// this anchor's own is, as it may tell that its record is lost (P9).
func (n *Part) distant(f []byte) bool {
	if len(f) == 0 || f[0] != tagBallot {
		return false
	}
	b, err := votes.DecodeBallot(f[1:])
	s := n.runner.stand.Load() // of the last step that had something to tell
	return err == nil && b.Anchor != s.self && b.Subject.View > s.view+2*quorum.Ahead
}

// pause waits, and reports false if the node stops meanwhile.
func (n *Part) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.runner.replies.done:
		return false
	}
}

// isVote reports whether an anchor says something of one view.
func isVote(f []byte) bool {
	return len(f) > 0 && (f[0] == tagBallot || f[0] == tagProposal || f[0] == tagAnnounce)
}

func isOffer(f []byte) bool { return len(f) > 0 && f[0] == tagOffer }

// isPledge reports whether a frame answers a linearizable read.
func isPledge(f []byte) bool { return len(f) > 0 && f[0] == tagAnswer }

// isQuestion reports whether a frame asks for blocks, or for ballots: in a meeting of
// boxes all do.
func isQuestion(f []byte) bool {
	return len(f) > 0 && (f[0] == tagCatchUp || f[0] == tagWant || f[0] == tagMeet)
}

// isAnswer reports whether a frame gives blocks, or may give ballots.
func isAnswer(f []byte) bool {
	return len(f) > 0 && (f[0] == tagBlocks || f[0] == tagBlock || f[0] == tagMeet)
}
