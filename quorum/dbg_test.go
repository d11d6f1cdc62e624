package quorum_test
import ("testing";"time";"fmt")
func TestDbg(t *testing.T){
 n:=four(t); n.log=func(f string,a ...any){ fmt.Printf("%6.2f ",n.now.Sub(start).Seconds()); fmt.Printf(f+"\n",a...)}
 n.work(0); n.runDelayed(900*time.Millisecond, 14*time.Second)
}
