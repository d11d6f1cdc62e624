package etcd

//go:generate protoc -I . --go_out=. --go_opt=module=github.com/aweigh/aweigh/etcd --go-grpc_out=. --go-grpc_opt=module=github.com/aweigh/aweigh/etcd --grpc-gateway_out=. --grpc-gateway_opt=module=github.com/aweigh/aweigh/etcd --grpc-gateway_opt=grpc_api_configuration=etcdpb/gateway.yaml etcdpb/aweigh_kv.proto etcdpb/aweigh_auth.proto etcdpb/aweigh_rpc.proto etcdpb/aweigh_lock.proto etcdpb/aweigh_election.proto
