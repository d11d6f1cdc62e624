package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh/action"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// right is what a user needs for the requests of one method, while users are enabled. The owner and administrators need
// nothing.
type right struct {
	// may reports why a user may not make a request.
	may func(ctx context.Context, g *auth.Guard, r *auth.Rights, request any) error
	// local reports whether a request is answered by what this node knows, however old; nil: all are.
	local func(request any) bool
	// reads: an answer is judged again if users and roles changed meanwhile.
	reads bool
	// open: every client that is served gets an answer.
	open bool
	// shows reports why a user may not see an answer, which can be about another key than the request; nil: it may.
	shows func(r *auth.Rights, answer any) error
	// sees states what a request reads, for the record of reads.
	sees requestlog.Sight
}

// rights are those of all methods. A method that is missing is refused.
var rights = map[string]right{
	aweighv1connect.NodePutProcedure:    {may: ofTxn(putTxn), local: provisional, sees: seesTxn(putTxn)},
	aweighv1connect.NodeDeleteProcedure: {may: ofTxn(deleteTxn), local: provisional, sees: seesTxn(deleteTxn)},
	aweighv1connect.NodeTxnProcedure:    {may: ofTxn(TxnOf), local: provisional, sees: seesTxn(TxnOf)},
	aweighv1connect.NodeRangeProcedure:  {may: reading[*aweighv1.RangeRequest], local: serializable, reads: true, sees: requestlog.Reads},
	aweighv1connect.NodeSubmitProcedure: {may: submitting, local: never, sees: seesBundle},
	// It tells of all names of the objects that would change, and of the keys of a range.
	aweighv1connect.NodeForecastProcedure: {may: ruling, local: serializable, sees: requestlog.Reads},
	aweighv1connect.NodeCompactProcedure:  {may: ruling, local: never, sees: requestlog.Writes},
	aweighv1connect.NodeWatchProcedure:    {may: reading[*aweighv1.WatchRequest], sees: requestlog.Reads},

	aweighv1connect.NodeNameProcedure: {may: ruling, local: never, sees: requestlog.Writes}, // it reaches all aliases of an object
	aweighv1connect.NodeResolveProcedure: {
		may: readingKey[*aweighv1.ResolveRequest], local: serializable, reads: true, shows: namesShown,
		sees: requestlog.Reads,
	},
	aweighv1connect.NodeObjectProcedure: {may: ruling, reads: true, sees: requestlog.Reads}, // the request names no key
	aweighv1connect.NodeRedirectsProcedure: {
		may: reading[*aweighv1.RedirectsRequest], local: serializable, reads: true, shows: namesShown,
		sees: requestlog.Reads,
	},
	aweighv1connect.NodeActProcedure: { // see mayAct
		may: readingKey[*aweighv1.ActRequest], local: never, shows: namesShown,
		sees: seesAct,
	},
	aweighv1connect.NodeJudgeProcedure:      {may: readingKey[*aweighv1.JudgeRequest], local: serializable, reads: true, sees: requestlog.Reads},
	aweighv1connect.NodeSignalsProcedure:    {may: reading[*aweighv1.SignalsRequest], sees: requestlog.Reads},
	aweighv1connect.NodeHistoryProcedure:    {may: readingKey[*aweighv1.HistoryRequest], reads: true, shows: namesShown, sees: requestlog.Reads},
	aweighv1connect.NodeProveProcedure:      {may: ruling, sees: requestlog.Reads}, // a proof holds the whole mutation, with other keys and values
	aweighv1connect.NodeProveRangeProcedure: {may: reading[*aweighv1.ProveRangeRequest], reads: true, shows: leavesShown, sees: requestlog.Reads},
	aweighv1connect.NodeTailProcedure:       {may: tailing, sees: requestlog.Reads},
	aweighv1connect.NodeBackupProcedure:     {may: ruling, sees: requestlog.Reads},

	// About the network, and not its keys.
	aweighv1connect.NodeCheckpointProcedure: {may: known, sees: requestlog.Writes},
	aweighv1connect.NodeStatusProcedure:     {may: known, sees: requestlog.Writes},
	aweighv1connect.NodeInviteProcedure:     {may: ruling, sees: requestlog.Writes}, // its holder can read everything as an observer
	aweighv1connect.NodeGenesisProcedure:    {may: known, sees: requestlog.Writes},
	aweighv1connect.NodeTrustProcedure:      {may: known, sees: requestlog.Writes},
	aweighv1connect.NodeExplainProcedure:    {may: known, sees: requestlog.Writes},
	aweighv1connect.NodeHandoversProcedure:  {may: known, sees: requestlog.Writes},
	aweighv1connect.NodeScopesProcedure:     {may: known, sees: requestlog.Writes},
	aweighv1connect.NodeTopologyProcedure:   {may: ruling, sees: requestlog.Reads}, // it names keys
	aweighv1connect.NodeIslandsProcedure:    {may: ruling, sees: requestlog.Reads}, // they name keys

	// Motions hold mutations, with keys and values. A user may follow one that it could have proposed.
	aweighv1connect.NodeMotionsProcedure:      {may: ruling, sees: requestlog.Reads},
	aweighv1connect.NodeMotionProcedure:       {may: known, reads: true, shows: motionShown, sees: requestlog.Reads},
	aweighv1connect.NodeWatchMotionProcedure:  {may: known, shows: motionShown, sees: requestlog.Reads},
	aweighv1connect.NodeExportMotionProcedure: {may: ruling, sees: requestlog.Reads},
	aweighv1connect.NodeWithdrawProcedure:     {may: ruling, local: never, sees: requestlog.Writes},
	aweighv1connect.NodeBallotsProcedure:      {may: ruling, sees: requestlog.Reads}, // they name motions, and hold comments
	aweighv1connect.NodeHandInProcedure:       {may: known, sees: requestlog.Writes}, // ballots are signed by their voters

	aweighv1connect.NodeUsersProcedure:  {may: ruling, reads: true, sees: requestlog.Writes},
	aweighv1connect.NodeWhoAmIProcedure: {may: known, open: true, sees: requestlog.Writes}, // about the caller itself

	// Handlers of these ask near.
	aweighv1connect.NodeGovernProcedure:       {may: denied, sees: requestlog.Writes},
	aweighv1connect.NodeApplyProcedure:        {may: denied, sees: requestlog.Writes},
	aweighv1connect.NodeVoteProcedure:         {may: denied, sees: requestlog.Reads},
	aweighv1connect.NodeDisableUsersProcedure: {may: denied, sees: requestlog.Writes},
}

func never(any) bool { return false }

func serializable(request any) bool {
	x, ok := request.(interface{ GetSerializable() bool })
	return ok && x.GetSerializable() || provisional(request)
}

// provisional reports whether an island is asked, which there is where no quorum answers.
func provisional(request any) bool {
	x, ok := request.(interface{ GetProvisional() bool })
	return ok && x.GetProvisional()
}

// known is for requests that any user may make.
func known(context.Context, *auth.Guard, *auth.Rights, any) error { return nil }

// ruling is for requests that only root may make.
func ruling(_ context.Context, _ *auth.Guard, r *auth.Rights, _ any) error { return r.MayRule() }

// denied is for requests that the owner and administrators alone may make.
func denied(ctx context.Context, _ *auth.Guard, _ *auth.Rights, _ any) error {
	return cmp.Or(near(ctx), auth.ErrDenied)
}

// reading is for requests that read a range of keys.
func reading[M interface {
	GetKey() []byte
	GetRangeEnd() []byte
}](_ context.Context, _ *auth.Guard, r *auth.Rights, request any) error {
	m := request.(M)
	return r.MayRead(m.GetKey(), m.GetRangeEnd())
}

// tailing is for entries of the history, which name keys: of the keys that begin with a prefix, or of all.
func tailing(_ context.Context, _ *auth.Guard, r *auth.Rights, request any) error {
	prefix := request.(*aweighv1.TailRequest).Prefix
	if len(prefix) == 0 {
		return r.MayRead([]byte{0}, []byte{0})
	}
	return r.MayRead(prefix, scope.PrefixEnd(prefix))
}

// readingKey is for requests that read one key.
func readingKey[M interface{ GetKey() []byte }](_ context.Context, _ *auth.Guard, r *auth.Rights, request any) error {
	return r.MayRead(request.(M).GetKey(), nil)
}

func single(op scope.Op) scope.Txn { return scope.Txn{Success: []scope.Op{op}} }

func putTxn(m *aweighv1.PutRequest) (scope.Txn, error) { return single(putOf(m)), nil }

func deleteTxn(m *aweighv1.DeleteRequest) (scope.Txn, error) { return single(deleteOf(m)), nil }

// ofTxn is for requests that are transactions.
func ofTxn[M any](as func(M) (scope.Txn, error)) func(context.Context, *auth.Guard, *auth.Rights, any) error {
	return func(ctx context.Context, g *auth.Guard, r *auth.Rights, request any) error {
		t, err := as(request.(M))
		if err != nil {
			return err
		}
		return g.MayTxn(ctx, r, &t)
	}
}

// submitting is for bundles that their author has signed. The policy permits what the author may change; a user may
// hand in no more than it may write itself, as the answer shows content.
func submitting(ctx context.Context, g *auth.Guard, r *auth.Rights, request any) error {
	if r.Root() {
		return nil
	}
	b, err := scope.CheckBundle(request.(*aweighv1.SubmitRequest).Bundle, scope.MostLimits(), votes.Verify)
	if err != nil {
		return err
	}
	for _, m := range b.Mutations() {
		var t scope.Txn
		if m.Class != scope.Write || canon.Decode(m.Content, &t) != nil {
			return auth.ErrDenied
		}
		if err := g.MayTxn(ctx, r, &t); err != nil {
			return err
		}
	}
	return nil
}

// mayAct reports why the user that makes a request may not carry out a verb of a class. What writes and claims reach is
// known only where they execute, as for names.
func mayAct(ctx context.Context, class action.Class, key []byte) error {
	r := rightsIn(ctx)
	if r == nil || class == action.Read {
		return nil
	}
	err := r.MayRule()
	if class == action.Signal {
		err = r.MayWrite(key, nil)
	}
	if err != nil {
		err = refused(err)
	}
	return err
}

// motionShown is for answers with a motion: a transaction of keys that the user may read and write, as the answer shows
// what is there.
func motionShown(r *auth.Rights, answer any) error {
	if r.Root() {
		return nil
	}
	var m scope.Mutation
	var t scope.Txn
	err := canon.Decode(answer.(*aweighv1.MotionResponse).GetMotion().GetMutation(), &m)
	if err != nil || m.Class != scope.Write || canon.Decode(m.Content, &t) != nil {
		return auth.ErrDenied
	}
	t.Ranges(func(key, end []byte) bool {
		err = errors.Join(r.MayRead(key, end), r.MayWrite(key, end))
		return err == nil
	})
	return err
}

// errNoRight refuses methods that have no row.
func errNoRight(procedure string) error {
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("api: no user has a right to %s", procedure))
}
