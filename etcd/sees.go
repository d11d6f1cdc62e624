package etcd

import (
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/requestlog"
)

// sights states what the requests of each method read, for the node's record of reads.
var sights = map[string]requestlog.Sight{
	etcdpb.KV_Range_FullMethodName:       requestlog.Reads,
	etcdpb.KV_RangeStream_FullMethodName: requestlog.Reads,
	etcdpb.KV_Put_FullMethodName:         seesPut,
	etcdpb.KV_DeleteRange_FullMethodName: seesDelete,
	etcdpb.KV_Txn_FullMethodName:         seesTxn,
	etcdpb.KV_Compact_FullMethodName:     requestlog.Writes,

	etcdpb.Watch_Watch_FullMethodName: requestlog.Reads,

	etcdpb.Lease_LeaseGrant_FullMethodName:      requestlog.Writes,
	etcdpb.Lease_LeaseRevoke_FullMethodName:     requestlog.Writes,
	etcdpb.Lease_LeaseKeepAlive_FullMethodName:  requestlog.Writes,
	etcdpb.Lease_LeaseTimeToLive_FullMethodName: seesLease,
	etcdpb.Lease_LeaseLeases_FullMethodName:     requestlog.Writes,

	etcdpb.Lock_Lock_FullMethodName:   seesClaim,
	etcdpb.Lock_Unlock_FullMethodName: requestlog.Writes,

	etcdpb.Election_Campaign_FullMethodName: seesClaim,
	etcdpb.Election_Proclaim_FullMethodName: requestlog.Writes,
	etcdpb.Election_Leader_FullMethodName:   seesLeader,
	etcdpb.Election_Observe_FullMethodName:  seesLeader,
	etcdpb.Election_Resign_FullMethodName:   requestlog.Writes,

	etcdpb.Cluster_MemberList_FullMethodName: requestlog.Writes,

	etcdpb.Maintenance_Alarm_FullMethodName:      requestlog.Writes,
	etcdpb.Maintenance_Status_FullMethodName:     requestlog.Writes,
	etcdpb.Maintenance_Defragment_FullMethodName: requestlog.Writes,
	etcdpb.Maintenance_Hash_FullMethodName:       requestlog.Writes,
	etcdpb.Maintenance_HashKV_FullMethodName:     requestlog.Writes,
	etcdpb.Maintenance_Snapshot_FullMethodName:   requestlog.Reads,

	etcdpb.Auth_AuthEnable_FullMethodName:           requestlog.Writes,
	etcdpb.Auth_AuthDisable_FullMethodName:          requestlog.Writes,
	etcdpb.Auth_AuthStatus_FullMethodName:           requestlog.Writes,
	etcdpb.Auth_Authenticate_FullMethodName:         requestlog.Writes,
	etcdpb.Auth_UserAdd_FullMethodName:              requestlog.Writes,
	etcdpb.Auth_UserGet_FullMethodName:              requestlog.Writes,
	etcdpb.Auth_UserList_FullMethodName:             requestlog.Writes,
	etcdpb.Auth_UserDelete_FullMethodName:           requestlog.Writes,
	etcdpb.Auth_UserChangePassword_FullMethodName:   requestlog.Writes,
	etcdpb.Auth_UserGrantRole_FullMethodName:        requestlog.Writes,
	etcdpb.Auth_UserRevokeRole_FullMethodName:       requestlog.Writes,
	etcdpb.Auth_RoleAdd_FullMethodName:              requestlog.Writes,
	etcdpb.Auth_RoleGet_FullMethodName:              requestlog.Writes,
	etcdpb.Auth_RoleList_FullMethodName:             requestlog.Writes,
	etcdpb.Auth_RoleDelete_FullMethodName:           requestlog.Writes,
	etcdpb.Auth_RoleGrantPermission_FullMethodName:  requestlog.Writes,
	etcdpb.Auth_RoleRevokePermission_FullMethodName: requestlog.Writes,

	healthpb.Health_Check_FullMethodName: requestlog.Writes,
	healthpb.Health_List_FullMethodName:  requestlog.Writes,
	healthpb.Health_Watch_FullMethodName: requestlog.Writes,
}

// seesPut is for puts, whose answer may show the content before.
func seesPut(request any) (bool, []requestlog.Keys) {
	r, ok := request.(*etcdpb.PutRequest)
	return !ok || r.PrevKv, nil
}

// seesDelete is for deletions, whose answer may show the content before.
func seesDelete(request any) (bool, []requestlog.Keys) {
	r, ok := request.(*etcdpb.DeleteRangeRequest)
	return !ok || r.PrevKv, nil
}

// seesTxn is for transactions.
func seesTxn(request any) (bool, []requestlog.Keys) {
	r, ok := request.(*etcdpb.TxnRequest)
	return !ok || txnReads(r), nil
}

// txnReads reports whether the answer to a transaction shows content of keys, or whether something holds of it: that
// of a compare shows that too.
func txnReads(t *etcdpb.TxnRequest) bool {
	if len(t.Compare) > 0 {
		return true
	}
	for _, branch := range [][]*etcdpb.RequestOp{t.Success, t.Failure} {
		for _, op := range branch {
			nested := op.GetRequestTxn()
			if op.GetRequestRange() != nil || op.GetRequestPut().GetPrevKv() || op.GetRequestDeleteRange().GetPrevKv() ||
				nested != nil && txnReads(nested) {
				return true
			}
		}
	}
	return false
}

// seesLease is for questions about a lease, whose answer may name its keys.
func seesLease(request any) (bool, []requestlog.Keys) {
	r, ok := request.(*etcdpb.LeaseTimeToLiveRequest)
	return !ok || r.Keys, nil
}

// seesLeader is for questions about an election, whose answers are values of its keys.
func seesLeader(request any) (bool, []requestlog.Keys) {
	_, more := seesClaim(request)
	return true, more
}

// seesClaim is for requests that take part in a lock or an election.
func seesClaim(request any) (bool, []requestlog.Keys) {
	r, ok := request.(interface{ GetName() []byte })
	if !ok {
		return true, nil
	}
	key, end := claimed(r.GetName())
	return false, []requestlog.Keys{{Key: key, End: end}}
}
