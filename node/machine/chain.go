package machine

import (
	"errors"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// candidate is a block that is not final yet.
type candidate struct {
	block  *scope.Block
	over   *kv.Overlay   // the state after it, nil until executed
	state  *scope.State  // as over
	result *scope.Result // as over
	stored bool          // its content is in the store
	valid  bool          // this node checked it or built it
}

// chain holds the final state and the tree of candidates on top of it.
type chain struct {
	id         aweigh.ScopeID
	pool       *pool
	terms      *scope.Epoch  // the epoch
	policy     *scope.Policy // of the epoch
	bounds     *Bounds
	epoch      aweigh.Epoch
	store      *scope.Cache
	applied    []kv.Op   // made final in this step; the store does not show them yet
	reader     kv.Reader // shows the final state: the store, or a candidate made final in this step
	state      *scope.State
	head       scope.Header // of the final block; zero at the genesis
	candidates map[aweigh.Hash]*candidate
	order      []aweigh.Hash      // keys of candidates, in order of arrival
	goal       quorum.Certificate // a finalization whose block, or ancestors, are missing
	ahead      bool               // no candidate was added or found valid since the last Ahead
}

func (c *chain) open(m *Machine) (err error) {
	c.id = m.id
	if c.store, err = scope.NewCache(m.store, c.id); err != nil {
		return err
	}
	c.bounds = m.cfg.Bounds
	b := m.cfg.Network.bounds
	if b != nil {
		c.store.Within(b)
	}
	c.reader, c.pool = c.store, &m.pool
	if c.state, err = scope.Open(c.reader, c.id); err != nil {
		return err
	}
	if b != nil {
		c.state = c.state.Within(b)
	}
	if c.state, err = c.state.Begin(m.cfg.Network.epochs()...); err != nil {
		return err
	}
	if c.state, err = c.state.Grown(); err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	if h := c.state.Height(); h > 0 {
		b, err := m.history().Block(h)
		if err != nil {
			return err
		}
		c.head = b.Header
	}
	return nil
}

// enter loads the epoch number and the policy of the state's epoch.
func (c *chain) enter() error {
	e, err := c.state.Epoch()
	if err == nil {
		c.epoch, c.terms, c.policy = e.Number, e, &e.Policy
	}
	return err
}

// view returns the view of this epoch in which the final block was proposed, or 0 if that block belongs to an earlier
// epoch.
func (c *chain) view() aweigh.View {
	if c.head.Epoch != c.epoch {
		return 0
	}
	return c.head.View
}

func (m *Machine) history() History {
	return History{Reader: m.recent, Scope: m.id}
}

// settle begins a step: the store now shows what the previous step wrote.
func (c *chain) settle() {
	if c.reader == kv.Reader(c.store) {
		return
	}
	c.store.Applied(c.applied)
	c.applied = nil
	old := c.reader
	c.reader, c.state = c.store, c.state.Over(c.store)
	for _, h := range c.order {
		if k := c.candidates[h]; k.over != nil && k.over.Base() == old {
			k.over.Rebase(c.store)
		}
	}
}

// plausible reports whether a block with this header can stand in the tree of candidates, judging by the header alone.
func (c *chain) plausible(h scope.Header) bool {
	head, most := c.state.Height(), aweigh.Height(c.bounds.OpenBlocks+1)
	if empty := h.Mutations.IsZero() && h.Evidence.IsZero(); empty || c.policy.Rules.Mode.OneRound() {
		most = aweigh.Height(c.bounds.OpenEmpty)
	}
	return h.Height > head && h.Height <= head+most && h.Epoch == c.epoch && h.View > c.view()
}

// add puts a block into the tree.
func (c *chain) add(b *scope.Block) *candidate {
	if k := c.candidates[b.Hash()]; k != nil {
		return k
	}
	k := &candidate{block: b}
	if c.candidates == nil {
		c.candidates = make(map[aweigh.Hash]*candidate)
	}
	c.candidates[b.Hash()] = k
	c.order = append(c.order, b.Hash())
	c.ahead = false
	return k
}

// restoreCandidate reads back the content of a block that this anchor vouched for, and of its ancestors that are not
// final.
func (c *chain) restoreCandidate(h aweigh.Hash) error {
	if c.candidates[h] != nil {
		return nil
	}
	raw, ok, err := c.store.Get(KeyBlock(c.id, h))
	if err != nil || !ok {
		return err
	}
	b, err := scope.DecodeBlock(raw, scope.MostLimits(), nil)
	if err == nil && b.Header.Height > c.state.Height() && b.Header.Epoch == c.epoch {
		c.add(b).stored = true
		return c.restoreCandidate(b.Header.Parent)
	}
	return err
}

// keep makes the content of a block durable with this step, and the content of its ancestors: where one round decides,
// it may be that no anchor that is still alive voted for those.
func (c *chain) keep(m *Machine, h aweigh.Hash) {
	k := c.candidates[h]
	must.Hold(k != nil, "a vote for block %s without its content", h.Short())
	for ; k != nil && !k.stored; k = c.candidates[k.block.Header.Parent] {
		k.stored = true
		m.write(kv.Set(KeyBlock(c.id, k.block.Hash()), k.block.Encode()))
	}
}

// path returns the candidates from the child of the final block up to h. If a block on the way is missing, ok is false
// and missing names the first one; if h is on a branch that died, ok is false and missing is zero.
func (c *chain) path(h aweigh.Hash) (path []*candidate, missing aweigh.Hash, ok bool) {
	for final := c.state.Head().Block; h != final; {
		k := c.candidates[h]
		if k == nil {
			return nil, h, false
		}
		if k.block.Header.Height <= c.state.Height() {
			return nil, aweigh.Hash{}, false // on a branch that died
		}
		path = append(path, k)
		h = k.block.Header.Parent
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path, aweigh.Hash{}, true
}

// after returns the state after block h; it executes h and its ancestors if they have not been executed. ok is false
// if content is missing, which missing then names, or if a block on the way is invalid.
func (c *chain) after(h aweigh.Hash) (state *scope.State, missing aweigh.Hash, ok bool) {
	path, missing, ok := c.path(h)
	if !ok {
		return nil, missing, false
	}
	state = c.state
	var reader kv.Reader = c.reader
	for _, k := range path {
		if k.over == nil {
			if err := state.CheckHeader(k.block.Header); err != nil {
				if !errors.Is(err, scope.ErrInvalid) {
					must.OK(err, "reading the state") // the error says nothing about the block
				}
				return nil, aweigh.Hash{}, false
			}
			c.execute(k, reader, state)
		}
		reader, state = k.over, k.state
	}
	return state, aweigh.Hash{}, true
}

// Ahead executes blocks that will most likely be needed, so that neither the next proposal nor finality waits for the
// execution. It changes only when the work is done. Call it when there is time, for example after effects were
// performed.
func (m *Machine) Ahead() {
	m.chain.settle()
	if m.chain.ahead {
		return
	}
	m.chain.ahead = true
	for _, h := range m.chain.order {
		if k := m.chain.candidates[h]; k.valid && k.over == nil {
			m.chain.after(h)
		}
	}
}

func (c *chain) execute(k *candidate, reader kv.Reader, state *scope.State) {
	repeated := c.repeatable(k.block)
	result, err := state.ExecuteFor(k.block, func(mutation, _ aweigh.Hash) bool {
		return c.pool.awaits(mutation) || repeated[mutation]
	})
	must.OK(err, "executing a block")
	c.pool.outcomes.strip(k.block, result.Outcomes, c.pool.awaits)
	k.result = result
	k.over = kv.NewOverlay(reader)
	k.over.Apply(result.Ops...)
	k.state = result.State(k.over)
}

// finalize makes the block of a verified finalization final, together with all its ancestors (P16). If content is
// missing, it is fetched first.
func (c *chain) finalize(m *Machine, cert quorum.Certificate) {
	for i := range cert.Signatures {
		m.attend(&quorum.Vote{Subject: cert.Subject, Signature: cert.Signatures[i]})
	}
	in := c.epoch
	if !c.makeFinal(m, cert.Subject.Block, cert) {
		if c.view() < cert.Subject.View {
			c.goal = cert
			m.sync.want(m, m.leaderPeer(cert.Subject.View))
		}
		return
	}
	if c.epoch != in {
		m.announceSoon()
		return
	}
	if c.state.Head().Block == cert.Subject.Block {
		m.write(kv.Set(KeyFinality(c.id, c.head.Height), canon.Encode(cert)))
		m.finality = cert
	}
	if c.goal.Subject.View <= cert.Subject.View {
		c.goal = quorum.Certificate{}
	}
	c.prune(m, cert.Subject.View)
	m.announceSoon()
}

// makeFinal applies a block and its ancestors because a finalization covers them. It returns false if content is
// missing. The certificate is for the block itself, or for the last header in below. makeFinal stops at the block that
// ends the epoch and begins the next one: blocks above that one are empty.
func (c *chain) makeFinal(m *Machine, h aweigh.Hash, cert quorum.Certificate, below ...scope.Header) bool {
	path, _, ok := c.path(h)
	if !ok {
		return false
	}
	_, _, ok = c.after(h)
	must.Hold(ok, "block %s is final, but does not follow from this node's state: the store is corrupt or the programs differ", h.Short())
	for i, k := range path {
		if i == len(path)-1 || k.result.Next != nil {
			c.vouch(m, k)
		}
		c.apply(m, k)
		if next := k.result.Next; next != nil {
			final := scope.Finality{Header: k.block.Header, Certificate: cert}
			for _, d := range path[i+1:] {
				final.Descendants = append(final.Descendants, d.block.Header)
			}
			final.Descendants = append(final.Descendants, below...)
			c.handOver(m, scope.Handover{Final: final, Terms: k.result.Terms})
			m.announceEnd(final)
			m.succeed(next)
			break
		}
	}
	return true
}

// apply makes one executed candidate final.
func (c *chain) apply(m *Machine, k *candidate) {
	h := k.block.Header
	hash := k.block.Hash()
	c.keep(m, hash)
	m.fx.Write = append(m.fx.Write, k.result.Ops...)
	c.applied = append(c.applied, k.result.Ops...)
	m.write(kv.Set(KeyHeight(c.id, h.Height), canon.Encode(k.stub())))
	m.archive(k)
	c.reader, c.state, c.head = k.over, k.state, h
	m.finality = quorum.Certificate{} // it was that of the block before
	m.finalAt, m.cycle = m.now, max(0, min(m.now.Sub(h.Time), gatherFew))
	m.answerAll(k)
	m.pool.outcomes.apply(k.block, k.result.Outcomes, m.now)
	m.pool.applied(k.block, h.Time)
	m.dropRevoked()
	m.proofs.applied(k.block.Proofs)
	m.polled(k)
	m.recordTrust(k)
	if k.block.Revocation != nil || k.result.Next != nil && m.order.mayChange() {
		m.order.look(m)
	}
	if k.result.Next == nil {
		m.partake(&h, hash)
	}
	m.note(Finalized{
		Epoch: h.Epoch, Height: h.Height, View: h.View, Block: hash, Proposer: h.Proposer,
		Mutations: k.block.Len(), Revision: c.state.Head().Revision,
	})
}

// handOver stores the proof of the next epoch, and the certificate of the last block if it has its own.
func (c *chain) handOver(m *Machine, h scope.Handover) {
	m.write(kv.Set(KeyHandover(c.id, h.Final.Header.Height), canon.Encode(h)))
	m.finality = quorum.Certificate{}
	if len(h.Final.Descendants) == 0 {
		m.write(kv.Set(KeyFinality(c.id, c.head.Height), canon.Encode(h.Final.Certificate)))
		m.finality = h.Final.Certificate
	}
}

// prune forgets candidates that can no longer become final, and the records of views below the final one.
func (c *chain) prune(m *Machine, final aweigh.View) {
	c.drop(m, final)
	if m.guard != nil {
		m.write(m.guard.Prune(final)...)
	}
	if n := len(m.attends); n > maxAttends {
		for v := range m.attends { // order-free: a filter
			if v+maxAttends/2 < final {
				delete(m.attends, v)
			}
		}
	}
}

func (c *chain) drop(m *Machine, final aweigh.View) {
	height := c.state.Height()
	live := c.order[:0]
	for _, h := range c.order {
		k := c.candidates[h]
		if k.block.Header.Height > height && k.block.Header.View > final {
			live = append(live, h)
			continue
		}
		delete(c.candidates, h)
		if k.stored && !m.isFinal(k) {
			m.write(kv.Del(KeyBlock(c.id, h)))
		}
	}
	c.order = live
	m.release(0, final)
	m.kept = slices.DeleteFunc(m.kept, func(s quorum.Subject) bool {
		if s.View < final {
			m.write(kv.Del(KeyCertificate(c.id, s)))
		}
		return s.View < final
	})
}

// isFinal reports whether a candidate at or below the final height is final.
func (m *Machine) isFinal(k *candidate) bool {
	p, err := m.history().Stub(k.block.Header.Height)
	if errors.Is(err, ErrNoBlock) {
		return false
	}
	must.OK(err, "reading the chain")
	return p.Block == k.block.Hash()
}

// deliver takes the content of a block that this node asked for.
func (c *chain) deliver(m *Machine, b *scope.Block) {
	if !m.wants.got(b.Hash()) || !m.chain.plausible(b.Header) {
		return
	}
	c.add(b)
	if !c.goal.IsZero() {
		c.finalize(m, c.goal)
	}
}
