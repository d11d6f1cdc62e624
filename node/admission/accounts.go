package admission

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/votes"
)

// Budgets are in microseconds of one processor. They are estimates and not measurements, so that a slow machine
// refuses no peer. An Ed25519 signature takes 46 µs to verify.
const (
	frameCost     = 10 // decoding, and the machine's part
	signatureCost = 50
	mutationCost  = 5     // to decode and execute a small mutation
	mutationBytes = 200   // of it, in a bundle
	bytesUnread   = 128   // per µs: to receive what is then ignored
	blockRead     = 72    // bytes per µs, of blocks read for a peer
	mostRead      = 2_250 // µs, for one answer

	anchorWork    = 500_000 // per second, of one anchor, whose clients may write 20,000 mutations in it; bursts of a second
	anchorVotes   = 100_000 // per second, for ballots, proposals and announcements, of which a view takes 250; bursts of a second
	anchorTalk    = 25_000  // per second, for its offers; bursts of four seconds
	nonMemberWork = 10_000  // per second, of one peer that is no anchor; bursts of two seconds
	nearWork      = 40_000  // per second, of a peer that is an anchor in another scope and follows this one; likewise
	allNonMembers = 25_000  // per second, of all peers that are no anchors together; bursts of a second

	// allReaders is what peers that the policy names as readers, or lists, may spend together, per second; bursts of a
	// second. They follow, and a non-member must not slow them down.
	allReaders = 100_000

	// allNeighbours is what anchors of other scopes may spend together in the scopes where they are no anchors, per
	// second; bursts of a second. They follow those scopes, and pass on what their clients write there.
	allNeighbours = 100_000

	anchorBytes    = 32 << 20 // per second, of blocks and ballots that an anchor gets when it asks; bursts of two seconds
	nonMemberBytes = 16 << 20 // likewise, for any other peer
)

// maxAccounts bounds the peers that have accounts.
const maxAccounts = 4096

// Accounts limits what each peer makes this node spend in one scope. Frames of a peer above its budget wait before they
// are handled. Safe for concurrent use.
type Accounts struct {
	members           Members
	nonMembers        *NonMembers // of the node
	catchUps, pledges expected    // answers that peers may still give

	mu    sync.Mutex
	peers map[machine.Peer]*account
}

type account struct {
	anchor bool
	work   *rate.Limiter // µs
	votes  *rate.Limiter // µs, of an anchor
	talk   *rate.Limiter // µs
	given  *rate.Limiter // bytes; in debt after a large answer
}

// untouched reports whether an account is equal to a new one.
func (x *account) untouched() bool {
	for _, l := range []*rate.Limiter{x.work, x.votes, x.talk, x.given} {
		if l.Tokens() < float64(l.Burst()) {
			return false
		}
	}
	return true
}

// NewAccounts returns the accounts of a scope with the given members; s is the node's.
func NewAccounts(m Members, s *NonMembers) *Accounts {
	return &Accounts{members: m, nonMembers: s}
}

// FreeMemory frees the memory of accounts that are equal to new ones.
func (a *Accounts) FreeMemory() {
	a.catchUps.freeMemory()
	a.pledges.freeMemory()
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

// Neighbour reports whether a peer is an anchor in another scope of the node, and not in this one.
func (a *Accounts) Neighbour(p machine.Peer) bool {
	return !a.members.Anchor(p) && a.nonMembers.home(p) != nil
}

// Reseat drops the accounts of peers that gained or lost a seat.
func (a *Accounts) Reseat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p, x := range a.peers {
		if x.anchor != a.members.Anchor(p) {
			delete(a.peers, p)
		}
	}
}

// of returns the account of a peer. It outlives the peer's connections: a peer does not get a new account by
// reconnecting.
func (a *Accounts) of(p machine.Peer) *account {
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
		work:  rate.NewLimiter(nonMemberWork, 2*nonMemberWork),
		votes: rate.NewLimiter(nonMemberWork, 2*nonMemberWork),
		talk:  rate.NewLimiter(nonMemberWork, 2*nonMemberWork),
		given: rate.NewLimiter(nonMemberBytes, 2*nonMemberBytes),
	}
	if a.members.Anchor(p) {
		x = &account{
			anchor: true,
			work:   rate.NewLimiter(anchorWork, anchorWork),
			votes:  rate.NewLimiter(anchorVotes, anchorVotes),
			talk:   rate.NewLimiter(anchorTalk, 4*anchorTalk),
			given:  rate.NewLimiter(anchorBytes, 2*anchorBytes),
		}
	}
	if !x.anchor && a.nonMembers.home(p) != nil {
		x.work = rate.NewLimiter(nearWork, 2*nearWork)
	}
	if a.peers == nil {
		a.peers = make(map[machine.Peer]*account)
	}
	a.peers[p] = x
	return x
}

// Sent notes a frame that this node sends to a peer: a question may be answered, and an answer is charged.
func (a *Accounts) Sent(to machine.Peer, f []byte) {
	switch class := machine.FrameClassOf(f); {
	case class.Is(machine.ClassCatchUp):
		a.catchUps.add(to)
	case class.Is(machine.ClassRead):
		a.pledges.add(to)
	case class.Is(machine.ClassContent):
		reserve(a.of(to).given, time.Now(), len(f))
		if class.Is(machine.ClassBlocks) {
			a.read(to, min(len(f)/blockRead, mostRead))
		}
	}
}

// Unasked reports whether a frame has blocks that this node did not ask the peer for.
func (a *Accounts) Unasked(p machine.Peer, f []byte) bool {
	return machine.FrameClassOf(f).Is(machine.ClassBlocks) && !a.catchUps.take(p)
}

// Wait returns how long a frame of a peer must wait, and charges the peer. A frame of a neighbour is dropped instead of
// waiting; it is charged only if it need not wait, so a dropped frame leaves no debt.
func (a *Accounts) Wait(p machine.Peer, f []byte) time.Duration {
	class := machine.FrameClassOf(f)
	if class.Is(machine.ClassOffer) {
		return 0 // see AllowOffer
	}
	x, anchor, now := a.of(p), a.members.Anchor(p), time.Now()
	work := frameCost
	// Answers to a linearizable read that this node asked for are no flood, however many there are, and at most one of
	// each round is examined.
	if !class.Is(machine.ClassPledge) || !a.pledges.take(p) {
		work = a.cost(f, anchor)
	}
	lim := x.work
	if anchor && class.Is(machine.ClassVote) { // an honest anchor needs less for them than for what its clients write
		lim = x.votes
	}
	var d time.Duration
	switch {
	case anchor:
		d = reserve(lim, now, work)
	case a.nonMembers.home(p) == nil:
		d = max(reserve(lim, now, work), reserve(a.nonMembers.shared(p), now, work))
	case !lim.AllowN(now, min(work, lim.Burst())) || !a.nonMembers.neighbours.AllowN(now, min(work, a.nonMembers.neighbours.Burst())):
		return time.Second
	}
	if class.Is(machine.ClassQuestion) {
		d = max(d, reserve(x.given, now, 0))
	}
	return d
}

// Burst returns how many units of work, or µs, a peer may cause at once.
func (a *Accounts) Burst(p machine.Peer) int { return a.of(p).work.Burst() }

// WaitLooks returns how long a peer must wait that makes all nodes do the given units of work, no more than its burst.
func (a *Accounts) WaitLooks(p machine.Peer, units int) time.Duration {
	x, now := a.of(p), time.Now()
	d := reserve(x.work, now, units)
	if !a.members.Anchor(p) {
		d = max(d, reserve(a.nonMembers.shared(p), now, units))
	}
	return d
}

// AllowLooks is WaitLooks for an anchor of another scope: false refuses, and leaves no debt.
func (a *Accounts) AllowLooks(p machine.Peer, units int64) bool {
	x, now := a.of(p), time.Now()
	if units == 0 {
		return true
	}
	return units <= int64(min(x.work.Burst(), a.nonMembers.neighbours.Burst())) && x.work.AllowN(now, int(units)) && a.nonMembers.neighbours.AllowN(now, int(units))
}

// AllowGossipLooks is WaitLooks for gossip, whose receivers must not wait: false refuses. It is charged to the peers
// that are no anchors, as in AllowGossip.
func (a *Accounts) AllowGossipLooks(p machine.Peer, units int64) bool {
	all := a.nonMembers.shared(p)
	return units == 0 || units <= int64(all.Burst()) && all.AllowN(time.Now(), int(units))
}

// AllowOffer reports whether a peer may make an offer now. Offers are repeated, and are long when little is decided, so
// those above the budget are ignored: to wait would delay the ballots behind them. For peers that do this on purpose,
// see WaitIgnored.
func (a *Accounts) AllowOffer(p machine.Peer, f []byte) bool {
	if !machine.FrameClassOf(f).Is(machine.ClassOffer) {
		return true
	}
	x, anchor, now := a.of(p), a.members.Anchor(p), time.Now()
	work := a.cost(f, anchor)
	if !x.talk.AllowN(now, min(work, x.talk.Burst())) {
		return false
	}
	if anchor {
		return true
	}
	all := a.nonMembers.shared(p)
	return all.AllowN(now, min(work, all.Burst()))
}

// WaitIgnored returns how long to wait after a frame that was not handled, because to receive it was work, too. A peer
// that is an anchor in another scope pays there: if it waited for what others spend, what it sends as an anchor would
// wait behind this.
func (a *Accounts) WaitIgnored(p machine.Peer, f []byte) time.Duration {
	x, now, work := a.of(p), time.Now(), frameCost+len(f)/bytesUnread
	if a.members.Anchor(p) {
		return reserve(x.votes, now, work)
	}
	if home := a.nonMembers.home(p); home != nil {
		return reserve(home.of(p).votes, now, work)
	}
	return max(reserve(x.work, now, work), reserve(a.nonMembers.shared(p), now, work))
}

// AllowGossip is Wait for gossip, whose receivers must not wait: false refuses. The peer that passes a bundle on need
// not be the one that floods, so all bundles are charged to the shared budget of the peers that are no anchors.
func (a *Accounts) AllowGossip(p machine.Peer, f []byte) bool {
	now, nonMember := time.Now(), !a.members.Anchor(p) || machine.FrameClassOf(f).Is(machine.ClassBundle)
	work := a.cost(f, !nonMember)
	if nonMember {
		all := a.nonMembers.shared(p)
		return all.AllowN(now, min(work, all.Burst()))
	}
	x := a.of(p)
	return x.work.AllowN(now, min(work, x.work.Burst()))
}

// errProofs is why a proof is not verified: the peer has spent what it may.
var errProofs = refusal.New(refusal.Full, "node: a proof above the budget of the peer that sends it")

// pay charges a peer for a proof, as Wait and AllowGossip charge it for the frame: what comes by gossip is charged to
// all peers that are no anchors, and what would be refused leaves no debt.
func (a *Accounts) pay(p machine.Peer, work int, gossip bool) error {
	x, all, now := a.of(p), a.nonMembers.shared(p), time.Now()
	ok := true
	switch near := a.nonMembers.neighbours; {
	case gossip:
		ok = all.AllowN(now, min(work, all.Burst()))
	case a.members.Anchor(p):
		reserve(x.work, now, work)
	case a.nonMembers.home(p) == nil:
		reserve(x.work, now, work)
		reserve(all, now, work)
	default:
		ok = x.work.AllowN(now, min(work, x.work.Burst())) && near.AllowN(now, min(work, near.Burst()))
	}
	if !ok {
		return errProofs
	}
	return nil
}

// Check is c.Check, for one peer that is no anchor at a time. What a proof in a bundle costs is charged before it is
// verified.
func (a *Accounts) Check(c *machine.Checker, p machine.Peer, f []byte, gossip bool) (machine.Message, error) {
	if !a.members.Anchor(p) {
		a.nonMembers.turn.Lock()
		defer a.nonMembers.turn.Unlock()
	}
	if machine.FrameClassOf(f).Is(machine.ClassBundle) {
		mine, may := *c, c.Proves
		mine.Proves = func(from machine.Peer, author votes.PublicKey, signatures int) error {
			err := may(from, author, signatures)
			if err == nil {
				err = a.pay(p, signatures*signatureCost, gossip)
			}
			return err
		}
		c = &mine
	}
	return c.Check(p, f)
}

// Shared returns the limiter, in µs, that a peer that is no anchor shares with others.
func (a *Accounts) Shared(p machine.Peer) *rate.Limiter { return a.nonMembers.shared(p) }

// Given returns the limiter of the bytes that a peer is given; it is in debt after a large answer.
func (a *Accounts) Given(p machine.Peer) *rate.Limiter { return a.of(p).given }

// WaitGiven returns how long a peer must wait for an answer of some bytes, and charges the peer.
func (a *Accounts) WaitGiven(p machine.Peer, bytes int) time.Duration {
	return reserve(a.Given(p), time.Now(), bytes)
}

// read charges a peer for blocks that were read for it. A peer that follows a scope asks for each of its blocks.
func (a *Accounts) read(p machine.Peer, work int) {
	now := time.Now()
	reserve(a.of(p).work, now, work)
	if !a.members.Anchor(p) {
		reserve(a.nonMembers.shared(p), now, work)
	}
}

// reserve takes n, or as much as fits in a burst, and returns how long to wait.
func reserve(l *rate.Limiter, now time.Time, n int) time.Duration {
	return l.ReserveN(now, min(n, l.Burst())).DelayFrom(now)
}

// cost estimates the work that a frame makes this node do, before any of it is done. A bundle of a peer that is no
// anchor costs several signatures: each anchor may be sent a different one, and all anchors verify all that one of
// them proposes.
func (a *Accounts) cost(f []byte, anchor bool) int {
	switch class := machine.FrameClassOf(f); {
	case class.Is(machine.ClassBundle) && !anchor:
		return frameCost + min(a.members.Seats(), 8)*signatureCost + len(f)/mutationBytes*mutationCost
	case class.Is(machine.ClassOffer) && !anchor: // the votes of other peers are not verified
		return frameCost + signatureCost
	case class.Is(machine.ClassRead): // the answer needs no work
		return 2 * frameCost
	}
	return frameCost + machine.FrameWork(f)*signatureCost
}
