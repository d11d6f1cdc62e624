package node

import (
	"context"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// What follows means the root scope, or the node as a whole, wherever the keys of a request lie.

// Absence is Replica.Absence of the root scope.
func (n *Node) Absence(a aweigh.AnchorID) (string, error) {
	return n.root.Absence(a)
}

// Access is Replica.Access of the root scope.
func (n *Node) Access(ctx context.Context, linearizable bool) (scope.Access, error) {
	return n.root.Access(ctx, linearizable)
}

// Addrs are the addresses at which the node listens.
func (n *Node) Addrs() []string {
	return n.root.Addrs()
}

// Apply is Replica.Apply of the root scope.
func (n *Node) Apply(ctx context.Context, sponsor aweigh.AnchorID, name string, once Once) (scope.Decision, machine.Receipt, error) {
	return n.root.Apply(ctx, sponsor, name, once)
}

// AskAnchors is Replica.AskAnchors of the root scope.
func (n *Node) AskAnchors(ctx context.Context) {
	n.root.AskAnchors(ctx)
}

// Backup is Replica.Backup of the root scope.
func (n *Node) Backup(give func([]BackupFile) error) error {
	return n.root.Backup(give)
}

// CatchingUp is Replica.CatchingUp of the root scope.
func (n *Node) CatchingUp() bool {
	return n.root.CatchingUp()
}

// Checkpoint is Replica.Checkpoint of the root scope.
func (n *Node) Checkpoint(ctx context.Context, old int64, cosign bool) (Checkpoint, scope.Head, error) {
	return n.root.Checkpoint(ctx, old, cosign)
}

// Counts is Replica.Counts of the root scope.
func (n *Node) Counts() Counts {
	return n.root.Counts()
}

// Delegations is Replica.Delegations of the root scope.
func (n *Node) Delegations() []scope.Delegation {
	return n.root.Delegations()
}

// Dropped is Replica.Dropped of the root scope.
func (n *Node) Dropped() uint64 {
	return n.root.Dropped()
}

// Explain is Replica.Explain of the root scope.
func (n *Node) Explain(a aweigh.AnchorID, limit int) ([]Explained, bool, aweigh.Height, scope.Head, error) {
	return n.root.Explain(a, limit)
}

// Followed is Replica.Followed of the root scope.
func (n *Node) Followed() bool {
	return n.root.Followed()
}

// Genesis is Replica.Genesis of the root scope.
func (n *Node) Genesis() scope.Genesis {
	return n.root.Genesis()
}

// Govern is Replica.Govern of the root scope.
func (n *Node) Govern(ctx context.Context, d scope.Decision, once Once) (machine.Receipt, error) {
	return n.root.Govern(ctx, d, once)
}

// Government is Replica.Government of the root scope.
func (n *Node) Government(under *scope.Policy) (Government, error) {
	return n.root.Government(under)
}

// Grant is Replica.Grant of the root scope.
func (n *Node) Grant(ctx context.Context, id int64, ttl int64, once Once) (int64, machine.Receipt, error) {
	return n.root.Grant(ctx, id, ttl, once)
}

// HandoversAfter is Replica.HandoversAfter of the root scope.
func (n *Node) HandoversAfter(at aweigh.Height, most int, bytes int) ([][]byte, bool, error) {
	return n.root.HandoversAfter(at, most, bytes)
}

// History is Replica.History of the root scope.
func (n *Node) History() machine.History {
	return n.root.History()
}

// Invite is Replica.Invite of the root scope.
func (n *Node) Invite() Invite {
	return n.root.Invite()
}

// LastHead is Replica.LastHead of the root scope.
func (n *Node) LastHead() scope.Head {
	return n.root.LastHead()
}

// LastStatus is Replica.LastStatus of the root scope.
func (n *Node) LastStatus() machine.Status {
	return n.root.LastStatus()
}

// Limits is Replica.Limits of the root scope.
func (n *Node) Limits() scope.Limits {
	return n.root.Limits()
}

// Live is Replica.Live of the root scope.
func (n *Node) Live(ctx context.Context) []Check {
	return n.root.Live(ctx)
}

// LostBelow is Replica.LostBelow of the root scope.
func (n *Node) LostBelow() [][]byte {
	return n.root.LostBelow()
}

// Name is the node's, for people.
func (n *Node) Name() string {
	return n.root.Name()
}

// NetworkStats counts what its libp2p host did.
func (n *Node) NetworkStats() p2p.Stats {
	return n.root.NetworkStats()
}

// Overview is Replica.Overview of the root scope.
func (n *Node) Overview() Overview {
	return n.root.Overview()
}

// Peer is the libp2p identity of the node.
func (n *Node) Peer() machine.Peer {
	return n.root.Peer()
}

// Peers are the nodes with which it is connected.
func (n *Node) Peers() []p2p.PeerInfo {
	return n.root.Peers()
}

// Permit is Replica.Permit of the root scope.
func (n *Node) Permit(ctx context.Context, a scope.Access, once Once) (machine.Receipt, error) {
	return n.root.Permit(ctx, a, once)
}

// Pin is Replica.Pin of the root scope.
func (n *Node) Pin() Pin {
	return n.root.Pin()
}

// Prefix is Replica.Prefix of the root scope.
func (n *Node) Prefix() []byte {
	return n.root.Prefix()
}

// ProveMotion is Replica.ProveMotion of the root scope.
func (n *Node) ProveMotion(ctx context.Context, id votes.MotionID) (*scope.MotionProof, scope.Head, error) {
	return n.root.ProveMotion(ctx, id)
}

// Reach is Replica.Reach of the root scope.
func (n *Node) Reach() Reach {
	return n.root.Reach()
}

// Read is Replica.Read of the root scope.
func (n *Node) Read(ctx context.Context, linearizable bool) (*View, error) {
	return n.root.Read(ctx, linearizable)
}

// Ready is Replica.Ready of the root scope.
func (n *Node) Ready(ctx context.Context) []Check {
	return n.root.Ready(ctx)
}

// Scope is Replica.Scope of the root scope.
func (n *Node) Scope() aweigh.ScopeID {
	return n.root.Scope()
}

// Status is Replica.Status of the root scope.
func (n *Node) Status() machine.Status {
	return n.root.Status()
}

// Unseated is Replica.Unseated of the root scope.
func (n *Node) Unseated() aweigh.AnchorID {
	return n.root.Unseated()
}

// WatchSignals is Replica.WatchSignals of the root scope.
func (n *Node) WatchSignals(ctx context.Context, key []byte, end []byte, begun func() error, deliver func(x Signal, lost uint64) error) error {
	return n.root.WatchSignals(ctx, key, end, begun, deliver)
}
