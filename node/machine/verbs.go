package machine

import "github.com/aweigh/aweigh/action"

// A machine executes blocks, which asks predicates: with the build tag noverbs it does not compile.
var _ action.Language
