package etcd

import (
	"encoding/binary"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// short is a hash as one of etcd's numbers. It is never 0, which means "none".
func short(h aweigh.Hash) uint64 { return max(1, binary.BigEndian.Uint64(h[:8])) }

// MemberOf is etcd's number for an anchor.
func MemberOf(a aweigh.AnchorID) uint64 { return short(aweigh.Hash(a)) }

// memberID is etcd's number for a node: its anchor's, or for an observer the
// author's that it is.
func memberID(s *machine.Status, self machine.Peer) uint64 {
	if s.Self != (aweigh.AnchorID{}) {
		return MemberOf(s.Self)
	}
	return short(machine.AuthorOf(self))
}

// viewBits are the low bits of a term, which hold the view.
const viewBits = 40

// term is etcd's raft_term: it never falls, and rises with each change of who leads.
func term(h *scope.Head) uint64 {
	return uint64(h.Epoch)<<viewBits | uint64(h.View)&(1<<viewBits-1)
}

// header is the header of an answer as of a revision.
func (s *service) header(revision int64) *etcdpb.ResponseHeader {
	head := s.node.Root().LastHead()
	return &etcdpb.ResponseHeader{
		ClusterId: s.cluster, MemberId: s.member, Revision: revision, RaftTerm: term(&head),
	}
}
