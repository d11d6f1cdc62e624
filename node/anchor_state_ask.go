package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Every node asks the anchors that it is connected to whether they sign: when they connect, every few seconds, and
// when a caller wants to know. An idle scope sends nothing, so otherwise nothing would show that an anchor has lost
// its record. An anchor reports only on itself, over its own connection. No decision depends on the report: it is for
// people, probes and monitoring.

const (
	// stateEvery is how often an anchor is asked, where there are no more than stateMany.
	stateEvery = 10 * time.Second
	stateMany  = 100
	// stateSoon is how long after it connected an anchor is asked a second time: an anchor often learns only from
	// others that it has lost something.
	stateSoon = time.Second
	// stateNew is how soon an anchor is asked again that has a seat about which it has not reported.
	stateNew = 100 * time.Millisecond
	// stateWithin is how long an anchor may take to answer.
	stateWithin = 3 * time.Second
	// stateMute is after how many periods without an answer it counts as mute.
	stateMute = 3
	// stateAtOnce bounds the questions in progress.
	stateAtOnce = 32
	// stateFresh is how old an answer may be for callers that want to know now, and stateWait how long they wait for a
	// newer one.
	stateFresh = time.Second
	stateWait  = 500 * time.Millisecond
)

// states holds what the anchors of a node's scopes reported of themselves.
type states struct {
	slots chan struct{} // a token per question in progress
	met   chan struct{} // holds a token while an anchor waits for its first question

	mu     sync.Mutex
	period time.Duration // between two questions
	of     map[peer.ID]*stateOf
}

// stateOf is what one anchor reported since it was connected.
type stateOf struct {
	since  time.Time // it is connected
	asked  time.Time
	asking bool
	next   int // of its scopes, the first one to ask about
	said   map[aweigh.ScopeID]saidAt
}

type saidAt struct {
	AnchorReport
	at time.Time
}

func newStates() *states {
	return &states{
		slots: make(chan struct{}, stateAtOnce), met: make(chan struct{}, 1),
		period: stateEvery, of: make(map[peer.ID]*stateOf),
	}
}

// linked forgets what a peer reported before it connected again, or disconnected.
func (s *states) linked(id peer.ID, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, id)
	if up {
		s.ask()
	}
}

// ask makes the node soon ask the anchors that have not reported.
func (s *states) ask() {
	select {
	case s.met <- struct{}{}:
	default:
	}
}

// reportFrom returns the last report of a connected peer on a scope.
func (s *states) reportFrom(id peer.ID, in aweigh.ScopeID, now time.Time) AnchorReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[id]
	if x == nil {
		return AnchorReport{}
	}
	said, ok := x.said[in]
	switch rounds := time.Duration(1 + len(x.said)/maxStates); {
	case ok && now.Sub(said.at) <= stateMute*rounds*s.period:
		return said.AnchorReport
	case !ok && now.Sub(x.since) <= stateMute*rounds*s.period:
		return AnchorReport{}
	}
	return AnchorReport{State: AnchorMute}
}

// begin returns the scopes to ask a peer about now, none if it was asked recently.
func (s *states) begin(id peer.ID, scopes []aweigh.ScopeID, older time.Duration, now time.Time) []aweigh.ScopeID {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[id]
	if x == nil {
		x = &stateOf{since: now, said: make(map[aweigh.ScopeID]saidAt)}
		s.of[id] = x
	}
	if now.Sub(x.since) < 2*stateSoon {
		older = min(older, stateSoon*9/10)
	}
	if older <= stateFresh && x.unsettled(scopes) { // a caller waits for what changes soon
		older = min(older, stateNew)
	}
	if len(x.said) < len(scopes) { // it has a new seat
		older = min(older, stateNew)
	}
	if x.asking || now.Sub(x.asked) < older {
		return nil
	}
	x.asking, x.asked = true, now
	if len(scopes) > maxStates { // some in turn
		x.next %= len(scopes)
		turn := slices.Concat(scopes[x.next:], scopes[:x.next])
		x.next += maxStates
		scopes = turn[:maxStates]
	}
	return scopes
}

// unsettled reports whether there is a scope in which it does not sign.
func (x *stateOf) unsettled(scopes []aweigh.ScopeID) bool {
	return slices.ContainsFunc(scopes, func(in aweigh.ScopeID) bool { return x.said[in].State != AnchorSigns })
}

// end takes an answer, nil for none, and reports whether it changes anything.
func (s *states) end(id peer.ID, scopes []aweigh.ScopeID, all []AnchorReport, now time.Time) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[id]
	if x == nil {
		return false // it left meanwhile
	}
	x.asking = false
	for i, says := range all {
		if says.State > AnchorStopped && says.State != AnchorRefuses && says.State != AnchorClock { // no anchor reports that of itself
			says = AnchorReport{}
		}
		news = news || x.said[scopes[i]].AnchorReport != says
		x.said[scopes[i]] = saidAt{says, now}
	}
	return news
}

// keep forgets the scopes in which a peer no longer has a seat.
func (s *states) keep(id peer.ID, scopes []aweigh.ScopeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.of[id]; x != nil && len(x.said) > len(scopes) {
		for in := range x.said { // order-free: a filter
			if !slices.Contains(scopes, in) {
				delete(x.said, in)
			}
		}
	}
}

// watchStates asks anchors until ctx ends.
func (n *Node) watchStates(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		n.states.mu.Lock()
		period := n.states.period
		n.states.mu.Unlock()
		next := period
		select {
		case <-ctx.Done():
			return
		case <-n.states.met:
			next = stateSoon
		case <-timer.C:
		}
		n.askStates(ctx, period*9/10)
		timer.Reset(next)
	}
}

// askStates asks the connected anchors that were last asked longer ago than older. It returns when all have answered
// or ctx has ended.
func (n *Node) askStates(ctx context.Context, older time.Duration) {
	s := n.states
	anchors := n.anchorsToAsk()
	s.mu.Lock()
	s.period = stateEvery * time.Duration(1+len(anchors)/stateMany)
	s.mu.Unlock()
	var asking sync.WaitGroup
	for id, scopes := range anchors { // order-free: each is asked on its own
		s.keep(id, scopes)
		scopes = s.begin(id, scopes, older, time.Now())
		if len(scopes) == 0 {
			continue
		}
		asking.Go(func() {
			var all []AnchorReport
			select {
			case s.slots <- struct{}{}:
				all = n.askState(ctx, id, scopes)
				<-s.slots
			case <-ctx.Done():
			}
			if s.end(id, scopes, all, time.Now()) {
				n.root.wakeWatcher()
				for _, in := range scopes {
					if p := n.replica(in); p != nil {
						p.noteRefusals()
					}
				}
			}
		})
	}
	asking.Wait()
}

// anchorsToAsk returns the connected anchors, with their scopes.
func (n *Node) anchorsToAsk() map[peer.ID][]aweigh.ScopeID {
	all := make(map[peer.ID][]aweigh.ScopeID)
	n.met.mu.Lock()
	defer n.met.mu.Unlock()
	for _, p := range n.host.Peers() {
		for _, in := range n.met.in[p.ID] {
			all[p.ID] = append(all[p.ID], in.id)
		}
	}
	return all
}

// askState asks one anchor. It returns nil if the answer is missing or makes no sense.
func (n *Node) askState(ctx context.Context, id peer.ID, scopes []aweigh.ScopeID) []AnchorReport {
	ctx, cancel := context.WithTimeout(ctx, stateWithin)
	defer cancel()
	req := append([]byte(askState), canon.Encode(stateAsk{Scopes: scopes})...)
	raw, err := n.host.Request(ctx, id, req, maxStateAnswer)
	if refusedReading(err) {
		return slices.Repeat([]AnchorReport{{State: AnchorRefuses}}, len(scopes))
	}
	if err != nil {
		return nil
	}
	var a stateAnswer
	if err := canon.Decode(raw, &a); err != nil || len(a.All) != len(scopes) {
		return nil
	}
	return a.All
}

// AskAnchors asks the anchors of all scopes for their states, except those that answered a moment ago. It takes half a
// second at most, and returns early when all have answered.
func (n *Node) AskAnchors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	n.askStates(ctx, stateFresh)
}

var errStates = errors.New("node: more scopes than one question may name, or one of them twice")

// serveStates answers with the states of this node's anchor in the scopes that the peer may read, at the cost of its
// budget.
func (n *Node) serveStates(ctx context.Context, p machine.Peer, body []byte) ([]byte, error) {
	in, err := n.root.mayReadNow(p)
	if err != nil {
		return nil, err
	}
	if err := n.root.charge(ctx, p, foreignCost+len(body)/len(aweigh.ScopeID{}), maxStateAnswer+len(body)); err != nil {
		return nil, err
	}
	var ask stateAsk
	if err := canon.Decode(body, &ask); err != nil {
		return nil, err
	}
	if len(ask.Scopes) > maxStates {
		return nil, errStates
	}
	named := make(map[aweigh.ScopeID]bool, len(ask.Scopes))
	for _, id := range ask.Scopes {
		if named[id] {
			return nil, errStates
		}
		named[id] = true
	}
	a := stateAnswer{All: make([]AnchorReport, len(ask.Scopes))}
	told := in
	for i, id := range ask.Scopes {
		may := in
		if r := n.replica(id); r != nil && r != n.root {
			may = r.mayRead(p) // one scope whose state cannot be read keeps back no other
		}
		if told = told || may; !may {
			a.All[i] = AnchorReport{State: AnchorRefuses}
			continue
		}
		says, err := n.reportIn(ctx, id)
		if err != nil { // the machine hangs: no answer is the answer
			return nil, err
		}
		a.All[i] = says
	}
	if !told {
		n.root.measured.unread.Add(1)
		return nil, scope.ErrNoReader
	}
	return canon.Encode(a), nil
}

// reportIn returns what this node's anchor reports of itself in a scope. In the root scope, the machine is asked; in
// other scopes, of which there may be thousands, it is taken from the machine's last status.
func (n *Node) reportIn(ctx context.Context, id aweigh.ScopeID) (AnchorReport, error) {
	p := n.replica(id)
	switch {
	case p == nil && n.failure(id) != nil:
		return AnchorReport{State: AnchorStopped}, nil
	case p == nil:
		return AnchorReport{State: AnchorUnseated}, nil
	case p.vacant.Load():
		return AnchorReport{State: AnchorBehind}, nil
	case p.storeErr() != nil, p.stopped():
		return AnchorReport{State: AnchorStopped}, nil
	case p != n.root:
		s := p.runner.stand.Load().Status()
		return p.report(&s), nil
	}
	s, err := p.look(ctx)
	return p.report(&s), err
}

// says returns what this replica's anchor reports of itself according to a status.
func (n *Replica) report(s *machine.Status) AnchorReport {
	says := reportOf(s, n.behindErr(*s) != nil, n.ClockBehind() != 0)
	if says.State == AnchorKeyless && n.anchor.Load() != nil {
		says.State = AnchorUnseated
	}
	return says
}

// stopped reports whether the machine has stopped.
func (n *Replica) stopped() bool {
	select {
	case <-n.runner.replies.done:
		return true
	default:
		return false
	}
}

// stateRequest returns the body of a question about states, which is addressed to a node and not to a scope.
func stateRequest(req []byte) (body []byte, ok bool) { return bytes.CutPrefix(req, []byte(askState)) }
