package metrics

import (
	"maps"
	"slices"

	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
)

var (
	info       = gauge("node_info", "1, with the names of the node and of its network.", "name", "network", "peer")
	height     = gauge("height", "Height of the root scope's final block.")
	known      = gauge("known_height", "Height of the root scope's highest block proven to be final, here or not.")
	finalView  = gauge("final_view", "View of the root scope's final block.")
	view       = gauge("view", "View of the root scope in progress.")
	revision   = gauge("revision", "Revision of the root scope's key space.")
	epoch      = gauge("epoch", "Epoch of the root scope.")
	blockTime  = gauge("block_time_seconds", "Time of the root scope's final block, in seconds since 1970.")
	catchingUp = gauge("catching_up", "1 while final blocks of the root scope are fetched from others.")
	lost       = gauge("lost_state", "1 if this anchor lost its record of ballots in the root scope and signs nothing there.")
	faulty     = gauge("faulty_anchors", "Anchors of the root scope proven to have broken the rules.")
	proofs     = counter("equivocation_proofs_total", "Proofs known that an anchor of the root scope broke the rules.")

	scopeHeight   = gauge("scope_height", "Height of a scope's final block, by the scope's prefix.", "scope")
	scopeRevision = gauge("scope_revision", "Revision of a scope's key space.", "scope")
	scopeEpoch    = gauge("scope_epoch", "Epoch of a scope.", "scope")
	scopeWrites   = counter("scope_mutations_final_total", "Mutations in a scope's blocks that became final here, failed ones included.", "scope")
	scopeMayFail  = gauge("scope_anchor_failures_left", "Anchors of a scope in reach that may still stop before nothing can be decided there; -1 if nothing can.", "scope")
	scopeAnchor   = gauge("scope_anchor", "1 if this node holds an anchor in the scope.", "scope")
	scopeBytes    = gauge("scope_bytes", "Bytes of all versions of keys that a scope keeps.", "scope")
	scopeAllowed  = gauge("scope_bytes_allowed", "Bytes from which on a scope takes no more, by its policy; 0: any number.", "scope")
	scopeLost     = gauge("scope_lost_state", "1 if this anchor lost its record of ballots in the scope and signs nothing there.", "scope")
	scopeGiven    = gauge("scope_delegated", "Prefixes that the scope has delegated to scopes of their own.", "scope")
	scopeHomes    = counter("scope_came_home_total", "Scopes that came home to the scope, since it was founded.", "scope")
	scopeBehind   = gauge("scope_catching_up", "1 while final blocks of the scope are fetched from others.", "scope")

	blocks    = counter("blocks_final_total", "Blocks of all scopes that became final here.")
	mutations = counter("mutations_final_total", "Mutations in them, failed ones included.")
	ballots   = counter("ballots_signed_total", "Ballots signed in the root scope, by kind.", "kind")
	nullified = counter("views_nullified_total", "Views of the root scope that ended without a block, by their leader.", "leader")

	commits      = gauge("commit_seconds", "Time from a client's mutation to its outcome.")
	isleRefused  = counter("islands_refused_total", "Islands of this anchor of which the scope takes no more.")
	unread       = counter("unread_total", "Frames and requests of peers that may not read the scope, which were refused.")
	undecided    = counter("commits_undecided_total", "Mutations whose clients stopped waiting for the outcome.")
	givingWay    = gauge("give_way_rate", "Changes a second that scopes which give way to others are held to here; 0: none is held.")
	gaveWay      = counter("gave_way_total", "Changes that waited for scopes that are written to less.")
	answerBytes  = gauge("answer_bytes", "Bytes that answers to ranges hold while they are read and sent.")
	answerMost   = gauge("answer_bytes_allowed", "Bytes that answers to ranges may hold.")
	copies       = gauge("copies", "Copies of keys of scopes that this node does not hold.")
	copyBytes    = gauge("copy_bytes", "Bytes that these copies hold.")
	copyMost     = gauge("copy_bytes_allowed", "Bytes that these copies may hold.")
	copyReads    = counter("copy_reads_total", "Reads that copies answered.")
	answerWaits  = counter("answer_waits_total", "Reads of ranges that waited for room.")
	answerCut    = counter("answer_cut_total", "Clients that were disconnected, since they took nothing of their answers while reads waited.")
	watchBytes   = gauge("watch_bytes", "Bytes of changes that watches hold, with those kept for the next watch.")
	watchAllowed = gauge("watch_bytes_allowed", "Bytes of changes that watches may hold.")
	watchWaits   = counter("watch_waits_total", "Deliveries to watches that waited for room.")
	watchCut     = counter("watch_cut_total", "Clients that were disconnected, since they took nothing of their watches while others waited.")
	reads        = gauge("linearizable_read_seconds", "Time of linearizable reads.")
	unanswered   = counter("linearizable_reads_unanswered_total", "Linearizable reads whose clients stopped waiting.")

	poolBytes     = gauge("pool_bytes", "Mutations that wait to become final in the root scope, in bytes.")
	poolMutations = gauge("pool_mutations", "Mutations that wait to become final in the root scope.")
	poolWaiting   = gauge("pool_waiting_bundles", "Bundles in no open proposal of the root scope.")
	events        = gauge("event_queue_length", "Events that wait for the root scope's machine.")
	submits       = gauge("submit_queue_length", "Mutations of clients to the root scope that wait to be bundled.")

	weight    = gauge("reachable_weight", "Weight of the root scope's anchors in reach, this node included.")
	needed    = gauge("needed_weight", "Weight that a decision of the root scope needs.")
	total     = gauge("total_weight", "Weight of all anchors of the root scope.")
	mayFail   = gauge("anchor_failures_left", "Anchors of the root scope in reach that may still stop before nothing can be decided there; -1 if nothing can.")
	weighs    = gauge("anchor_weight", "Weight of an anchor of the root scope in this epoch; 0 on probation or standby.", "anchor")
	reachable = gauge("anchor_reachable", "1 if an anchor of the root scope is in reach and signs.", "anchor")
	state     = gauge("anchor_state", "1 for the state that an anchor of the root scope is in, by what it says of itself.", "anchor", "state")
	ahead     = gauge("anchor_clock_ahead_seconds", "By how much the last proposal of an anchor of the root scope was ahead of this node's clock on arrival.", "anchor")

	behind = gauge("clock_behind_seconds", "By how much this node's clock is behind those of most other anchors of the root scope, below 0 if it is ahead; 0 while that is not found.")

	refused     = counter("input_refused_total", "Input of peers that was refused, by class.", "reason")
	framesSent  = counter("frames_sent_total", "Frames handed to the network, by kind.", "kind")
	bytesSent   = counter("frames_sent_bytes_total", "Bytes of frames handed to the network, by kind.", "kind")
	framesTaken = counter("frames_received_total", "Frames that arrived, by kind.", "kind")
	bytesTaken  = counter("frames_received_bytes_total", "Bytes of frames that arrived, by kind.", "kind")
)

func ofNode(n Node, port Etcd) source {
	return func(to emit) {
		o, c := n.Root().Overview(), n.Root().Counts()
		position(to, o)
		quorums(to, o, c)
		work(to, o, c)
		frames(to, c)
		scopes(to, n.Scopes())
		etcdOfNode(to, o, c)
		if port != nil {
			etcdOfPort(to, o, port.Counts())
		}
	}
}

func scopes(to emit, all []node.ScopeInfo) {
	for _, x := range all {
		name := "/" // the root scope
		if p := x.Genesis.Prefix(); len(p) > 0 {
			name = show.Key(p)
		}
		if !x.Held {
			continue // its values come from other nodes, and are old
		}
		send(to, scopeHeight, uint64(x.Head.Height), name)
		send(to, scopeRevision, x.Head.Revision, name)
		send(to, scopeEpoch, uint64(x.Epoch.Number), name)
		send(to, scopeWrites, x.Mutations, name)
		send(to, scopeMayFail, x.Failures, name)
		sendBool(to, scopeAnchor, x.Anchor, name)
		send(to, scopeBytes, uint64(x.Head.Bytes), name)
		send(to, scopeAllowed, uint64(x.Epoch.Policy.Limits.ScopeBytes), name)
		sendBool(to, scopeLost, x.Lost, name)
		sendBool(to, scopeBehind, x.Behind, name)
		send(to, scopeGiven, x.Head.Delegated, name)
		send(to, scopeHomes, x.Head.Folded, name)
	}
}

func position(to emit, o node.Overview) {
	send(to, info, 1, o.Name, o.Network, string(o.Peer))
	send(to, height, uint64(o.Head.Height))
	send(to, known, uint64(o.Known))
	send(to, finalView, uint64(o.Head.View))
	send(to, view, uint64(o.View))
	send(to, revision, o.Head.Revision)
	send(to, epoch, uint64(o.Epoch))
	send(to, blockTime, float64(o.Head.Time)/1e9)
	sendBool(to, catchingUp, o.Behind)
}

func quorums(to emit, o node.Overview, c node.Counts) {
	send(to, weight, o.Reach.Weight)
	send(to, needed, o.Reach.Needed)
	send(to, total, o.Reach.Total)
	send(to, mayFail, o.Reach.Failures)
	send(to, behind, o.ClockBehind.Seconds())
	sendBool(to, lost, o.Lost)
	send(to, proofs, len(o.Faults))
	liars := make(map[string]bool)
	for _, f := range o.Faults {
		liars[f.Anchor().String()] = true
	}
	send(to, faulty, len(liars))
	for _, a := range c.Anchors {
		send(to, weighs, a.Weight, a.Name)
		sendBool(to, reachable, slices.Contains(o.Reach.Anchors, a.ID), a.Name)
		send(to, state, 1, a.Name, o.Reach.Says[a.ID].State.String())
		send(to, nullified, a.Nullified, a.Name)
		if a.Heard {
			send(to, ahead, a.Ahead.Seconds(), a.Name)
		}
	}
}

func work(to emit, o node.Overview, c node.Counts) {
	send(to, blocks, c.Blocks)
	send(to, mutations, c.Mutations)
	for k := quorum.Notarize; k <= quorum.Finalize; k++ {
		send(to, ballots, o.Signed[k], k.String())
	}
	sendLatencies(to, commits, c.Commits)
	send(to, undecided, c.Undecided)
	send(to, unread, c.Unread)
	send(to, isleRefused, c.IslandsRefused)
	send(to, givingWay, c.GivingWay)
	send(to, gaveWay, c.GaveWay)
	sendLatencies(to, reads, c.Reads)
	send(to, unanswered, c.Unanswered)
	send(to, poolBytes, o.PoolSize)
	send(to, poolMutations, o.Pool)
	send(to, poolWaiting, o.Waiting)
	send(to, events, c.Events)
	send(to, submits, c.Submits)
	send(to, answerBytes, c.Answers.Used)
	send(to, answerMost, c.Answers.Limit)
	send(to, answerWaits, c.Answers.Waited)
	send(to, copies, c.Copies.Copies)
	send(to, copyBytes, c.Copies.Used)
	send(to, copyMost, c.Copies.Limit)
	send(to, copyReads, c.Copies.Answered)
	send(to, answerCut, c.Answers.Cut)
	send(to, watchBytes, c.Watches.Used)
	send(to, watchAllowed, c.Watches.Limit)
	send(to, watchWaits, c.Watches.Waited)
	send(to, watchCut, c.Watches.Cut)
}

func frames(to emit, c node.Counts) {
	for i, n := range c.Refused {
		send(to, refused, n, refusal.Class(i).String())
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Sent)) {
		send(to, framesSent, c.Sent[kind].Frames, kind)
		send(to, bytesSent, c.Sent[kind].Bytes, kind)
		send(to, framesTaken, c.Received[kind].Frames, kind)
		send(to, bytesTaken, c.Received[kind].Bytes, kind)
	}
}
