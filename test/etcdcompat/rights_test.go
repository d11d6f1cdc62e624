package etcdcompat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// rounds is how many changes of users and roles TestBothPortsJudgeAsEtcd plays: 200, or AWEIGH_RIGHTS.
func rounds(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("AWEIGH_RIGHTS"))
	if err != nil && os.Getenv("AWEIGH_RIGHTS") != "" {
		t.Fatal(err)
	}
	if n <= 0 {
		n = 200
	}
	return n
}

// drawn is a range of keys, drawn from few.
type drawn struct{ key, end []byte }

func drawKeys(r *rand.Rand) (d drawn) {
	d.key = []byte("/" + string(rune('a'+r.IntN(6))))
	switch r.IntN(5) {
	case 0:
		d.end = []byte{0}
	case 1, 2:
		d.end = []byte("/" + string(rune('a'+r.IntN(7))))
		if bytes.Compare(d.key, d.end) >= 0 {
			d.end = nil
		}
	}
	return d
}

// operation is one of a request.
type operation struct {
	kind int // 0: range, 1: put, 2: delete, 3: transaction
	at   drawn
	prev bool
	cmp  []drawn
	ops  [2][]operation
}

func drawOp(r *rand.Rand, depth int) operation {
	o := operation{kind: r.IntN(4), at: drawKeys(r), prev: r.IntN(3) == 0}
	if o.kind == 3 && depth == 2 {
		o.kind = 0
	}
	if o.kind == 1 {
		o.at.end = nil
	}
	if o.kind == 3 {
		for range r.IntN(2) {
			o.cmp = append(o.cmp, drawKeys(r))
		}
		put := false // keys of several puts must differ
		for i := range o.ops {
			for range r.IntN(3) {
				x := drawOp(r, depth+1)
				if x.kind != 0 && put {
					x.kind = 0
				}
				put = put || x.kind != 0
				o.ops[i] = append(o.ops[i], x)
			}
		}
	}
	return o
}

// empty reports whether an operation is a transaction of nothing.
func (o *operation) empty() bool {
	for _, branch := range o.ops {
		for i := range branch {
			if !branch[i].empty() {
				return false
			}
		}
	}
	return o.kind == 3 && len(o.cmp) == 0
}

// inEtcd is the operation as one of etcd's.
func (o *operation) inEtcd() *pb.RequestOp {
	switch o.kind {
	case 0:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: o.at.key, RangeEnd: o.at.end}}}
	case 1:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: o.at.key, PrevKv: o.prev}}}
	case 2:
		x := &pb.DeleteRangeRequest{Key: o.at.key, RangeEnd: o.at.end, PrevKv: o.prev}
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: x}}
	}
	t := new(pb.TxnRequest)
	for _, c := range o.cmp {
		t.Compare = append(t.Compare, &pb.Compare{
			Target: pb.Compare_VERSION, Result: pb.Compare_GREATER, Key: c.key, RangeEnd: c.end, TargetUnion: &pb.Compare_Version{Version: 3},
		})
	}
	for i, to := range []*[]*pb.RequestOp{&t.Success, &t.Failure} {
		for j := range o.ops[i] {
			*to = append(*to, o.ops[i][j].inEtcd())
		}
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: t}}
}

// inAPI is the operation as one of the node's API, in JSON, and the method for it alone.
func (o *operation) inAPI() (method string, m map[string]any) {
	m = map[string]any{"key": o.at.key}
	if len(o.at.end) > 0 {
		m["rangeEnd"] = o.at.end
	}
	switch o.kind {
	case 0:
		return "Range", m
	case 1:
		m["prevKv"] = o.prev
		return "Put", m
	case 2:
		m["prevKv"] = o.prev
		return "Delete", m
	}
	m = map[string]any{}
	compare := []any{}
	for _, c := range o.cmp {
		compare = append(compare, map[string]any{
			"key": c.key, "rangeEnd": c.end, "target": "TARGET_VERSION", "relation": "RELATION_GREATER", "number": 3,
		})
	}
	m["compare"] = compare
	for i, name := range []string{"success", "failure"} {
		ops := []any{}
		for j := range o.ops[i] {
			kind, x := o.ops[i][j].inAPI()
			ops = append(ops, map[string]any{map[string]string{"Range": "range", "Put": "put", "Delete": "delete", "Txn": "txn"}[kind]: x})
		}
		m[name] = ops
	}
	return "Txn", m
}

// TestBothPortsJudgeAsEtcd: random users, roles and permissions change, and after each change random requests of random
// users get the same verdict by etcd, by etcd's port of a node, and by the node's API.
func TestBothPortsJudgeAsEtcd(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("AWEIGH_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	real, ours := startEtcd(t), startAweigh(t, 1)
	sockets, err := filepath.Glob(filepath.Join(ours.dir, "*", "run", "api.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatal(sockets, err)
	}
	api := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", sockets[0])
	}}}
	defer api.CloseIdleConnections()
	systems := []*system{real, ours}
	ctx := t.Context()
	tokens := make(map[*system]map[string]string)
	login := func() {
		t.Helper()
		for _, s := range systems {
			tokens[s] = make(map[string]string)
			for _, u := range []string{"root", "u0", "u1", "u2"} {
				a, err := pb.NewAuthClient(s.conn(0)).Authenticate(ctx, &pb.AuthenticateRequest{Name: u, Password: u})
				if err != nil {
					t.Fatal(s.name, u, err)
				}
				tokens[s][u] = a.Token
			}
		}
	}
	with := func(s *system, user string) context.Context {
		if tokens[s][user] == "" {
			return ctx
		}
		return metadata.AppendToOutgoingContext(ctx, "token", tokens[s][user])
	}
	change := func(do func(context.Context, pb.AuthClient) error) {
		t.Helper()
		var got [2]codes.Code
		for i, s := range systems {
			got[i] = status.Code(do(with(s, "root"), pb.NewAuthClient(s.conn(0))))
		}
		if got[0] != got[1] {
			t.Fatalf("seed %d: a change: etcd %v, aweigh %v", seed, got[0], got[1])
		}
	}
	for _, u := range []string{"root", "u0", "u1", "u2"} {
		change(func(ctx context.Context, c pb.AuthClient) error {
			_, err := c.UserAdd(ctx, &pb.AuthUserAddRequest{Name: u, Password: u, Options: &authpb.UserAddOptions{}})
			return err
		})
	}
	for _, role := range []string{"r0", "r1", "r2"} {
		change(func(ctx context.Context, c pb.AuthClient) error {
			_, err := c.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: role})
			return err
		})
	}
	change(func(ctx context.Context, c pb.AuthClient) error {
		_, err := c.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"})
		return err
	})
	change(func(ctx context.Context, c pb.AuthClient) error {
		_, err := c.AuthEnable(ctx, &pb.AuthEnableRequest{})
		return err
	})
	login()
	fresh := time.Now()
	granted := make(map[string][]drawn) // by role
	verdicts, commands := [2]int{}, [2]int{}
	program := newOwner(t, ours)
	for round := range rounds(t) {
		if time.Since(fresh) > 2*time.Minute {
			login()
			fresh = time.Now()
		}
		role, user := fmt.Sprintf("r%d", r.IntN(3)), fmt.Sprintf("u%d", r.IntN(3))
		switch n := r.IntN(6); {
		case n < 2:
			d, kind := drawKeys(r), authpb.Permission_Type(r.IntN(3))
			if slices.ContainsFunc(granted[role], func(x drawn) bool {
				return bytes.Equal(x.key, d.key) && !bytes.Equal(x.end, d.end)
			}) {
				break // etcd would keep two permissions of one range then (docs/etcd.md)
			}
			granted[role] = append(granted[role], d)
			change(func(ctx context.Context, c pb.AuthClient) error {
				_, err := c.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{Name: role, Perm: &authpb.Permission{PermType: kind, Key: d.key, RangeEnd: d.end}})
				return err
			})
		case n < 4 && len(granted[role]) > 0:
			i := r.IntN(len(granted[role]))
			d := granted[role][i]
			granted[role] = append(granted[role][:i:i], granted[role][i+1:]...)
			change(func(ctx context.Context, c pb.AuthClient) error {
				_, err := c.RoleRevokePermission(ctx, &pb.AuthRoleRevokePermissionRequest{Role: role, Key: d.key, RangeEnd: d.end})
				return err
			})
		case n == 4:
			change(func(ctx context.Context, c pb.AuthClient) error {
				_, err := c.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: user, Role: role})
				return err
			})
		default:
			change(func(ctx context.Context, c pb.AuthClient) error {
				_, err := c.UserRevokeRole(ctx, &pb.AuthUserRevokeRoleRequest{Name: user, Role: role})
				return err
			})
		}
		for range 3 {
			user := []string{"u0", "u1", "u2", "root", ""}[min(r.IntN(12)/3, 4)]
			if r.IntN(20) == 0 {
				user = ""
			}
			o := drawOp(r, 0)
			if user == "" && o.empty() {
				continue // etcd answers it; a node asks for a user (docs/etcd.md)
			}
			var denied [3]bool
			for i, s := range systems {
				denied[i] = refusedBy(with(s, user), pb.NewKVClient(s.conn(0)), &o)
			}
			denied[2] = user == "" && denied[0] // the owner calls by the socket
			if user != "" {
				method, m := o.inAPI()
				denied[2] = refusedByAPI(t, api, tokens[ours][user], method, m)
			}
			if denied[0] != denied[1] || denied[0] != denied[2] {
				_, m := o.inAPI()
				text, _ := json.Marshal(m)
				for _, s := range systems {
					t.Log(s.name, held(with(s, "root"), pb.NewAuthClient(s.conn(0)), user))
				}
				t.Fatalf("seed %d, round %d: user %q, kind %d, %s: refused by etcd %v, by etcd's port %v, by the API %v",
					seed, round, user, o.kind, text, denied[0], denied[1], denied[2])
			}
			if args, text, ok := o.inCommand(); ok && commandShare(r) {
				by := program.refuses(tokens[ours][user], args, text)
				if want := denied[0] && user != ""; by != want {
					for _, s := range systems {
						t.Log(s.name, held(with(s, "root"), pb.NewAuthClient(s.conn(0)), user))
					}
					t.Fatalf("seed %d, round %d: user %q, aweigh %q %q: refused by the program %v, by etcd %v", seed, round, user, args, text, by, want)
				}
				if by {
					commands[1]++
				} else {
					commands[0]++
				}
			}
			if denied[0] {
				verdicts[1]++
			} else {
				verdicts[0]++
			}
		}
	}
	if verdicts[0] == 0 || verdicts[1] == 0 {
		t.Errorf("%d requests were permitted, %d refused", verdicts[0], verdicts[1])
	}
	if rounds(t) >= 200 && (commands[0] == 0 || commands[1] == 0) {
		t.Errorf("of the program, %d commands were permitted, %d refused", commands[0], commands[1])
	}
	t.Logf("seed %d: %d requests were permitted, %d refused; of the program, %d and %d", seed, verdicts[0], verdicts[1], commands[0], commands[1])
}

// commandShare chooses the requests that go through the program as well: one in 12, as starting it takes long.
func commandShare(r *rand.Rand) bool { return r.IntN(12) == 0 }

// inCommand is the operation as a command of the program, and the text for its standard input; ok is false for one that
// has no such form.
func (o *operation) inCommand() (args []string, text string, ok bool) {
	if o.kind == 3 {
		text, ok = o.inText()
		return []string{"txn"}, text, ok
	}
	args = []string{[]string{"get", "put", "del"}[o.kind], string(o.at.key)}
	if o.kind == 1 {
		args = append(args, "")
	}
	switch string(o.at.end) {
	case "":
	case "\x00":
		args = append(args, "--from-key")
	default:
		args = append(args, "--range-end", string(o.at.end))
	}
	if o.prev && o.kind != 0 {
		args = append(args, "--prev")
	}
	return args, "", true
}

// inText is a transaction as people write it, of single keys, and without transactions within. Both branches have an
// operation, since the program fails where a condition does not hold and there is no else.
func (o *operation) inText() (text string, ok bool) {
	if len(o.ops[0]) == 0 || len(o.ops[1]) == 0 {
		return "", false
	}
	for i, c := range o.cmp {
		if len(c.end) > 0 {
			return "", false
		}
		if i == 0 {
			text += "if\n"
		}
		text += fmt.Sprintf("  version %s > 3\n", c.key)
	}
	for i, name := range []string{"then", "else"} {
		text += name + "\n"
		for _, x := range o.ops[i] {
			if x.kind == 3 || len(x.at.end) > 0 || x.prev {
				return "", false
			}
			text += fmt.Sprintf("  %s %s", []string{"get", "put", "del"}[x.kind], x.at.key)
			if x.kind == 1 {
				text += " v"
			}
			text += "\n"
		}
	}
	return text, true
}

// held describes the roles of a user.
func held(ctx context.Context, c pb.AuthClient, user string) string {
	u, err := c.UserGet(ctx, &pb.AuthUserGetRequest{Name: user})
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, role := range u.Roles {
		r, err := c.RoleGet(ctx, &pb.AuthRoleGetRequest{Role: role})
		text += fmt.Sprintf("%s: %v %v; ", role, r.GetPerm(), err)
	}
	return text
}

// refusedBy reports whether a system refuses an operation of a user.
func refusedBy(ctx context.Context, kv pb.KVClient, o *operation) bool {
	var err error
	switch x := o.inEtcd().Request.(type) {
	case *pb.RequestOp_RequestRange:
		_, err = kv.Range(ctx, x.RequestRange)
	case *pb.RequestOp_RequestPut:
		_, err = kv.Put(ctx, x.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		_, err = kv.DeleteRange(ctx, x.RequestDeleteRange)
	case *pb.RequestOp_RequestTxn:
		_, err = kv.Txn(ctx, x.RequestTxn)
	}
	return err != nil && (status.Code(err) == codes.PermissionDenied || status.Convert(err).Message() == "etcdserver: user name is empty")
}

// refusedByAPI is the same of the node's API.
func refusedByAPI(t *testing.T, c *http.Client, token, method string, m any) bool {
	t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/aweigh.v1.Node/"+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Code, Message string }
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	if resp.StatusCode != http.StatusOK && answer.Code != "permission_denied" && answer.Code != "failed_precondition" {
		t.Fatalf("%s %s: %s %v", method, body, resp.Status, answer)
	}
	return answer.Code == "permission_denied"
}
