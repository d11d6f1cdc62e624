// Package sweep runs many simulated worlds, and compares them or makes them
// smaller. Run draws a world from each seed and adds up what came of them. Explore
// searches the schedules of small worlds. Shrink looks for the smallest scenario
// that fails as a given one does. DiffTraces shows where two traces part.
//
// The package sees scenarios and results, and nothing within a world.
package sweep
