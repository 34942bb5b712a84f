// Package measure is what the stages of the benchmark share: the shape of a
// figure, the clocks, a load that runs in turns, and the run that collects.
//
// A stage is a package beside this one with two functions of the type [Stage]:
//
//	func Measure(ctx context.Context, r *measure.Run) error // its figures, each beside its floor
//	func Growth(ctx context.Context, r *measure.Run) error  // its cost as the system grows
//
// Either function adds its figures with [Run.Add] and tells how far it is with
// [Run.Step]. An error means that the stage could not be measured, or that
// what it measured was wrong: lost, out of order, refused. A goal missed is
// not an error. [Run.Quick] asks for a few seconds instead of a minute or two.
//
// The command runs each stage in a process of its own, so that processor time,
// memory and profile belong to that stage alone. Stages need no flags and no
// main package.
//
// Rules for honest figures: the floor and the subject run in turns in the same
// process ([Alternate]), since the rate of a shared machine varies; a rate is
// given with the processor time of an operation, which varies less; a warm-up
// counts for neither.
//
// A Run is for one goroutine, save for Step. Nothing here starts goroutines
// that outlive the call.
package measure
