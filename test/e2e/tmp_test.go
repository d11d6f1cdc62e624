package e2e
import "testing"
func TestObserverFollowsX(t *testing.T) { t.Cleanup(func(){ t.Fail() }); TestObserverFollows(t) }
