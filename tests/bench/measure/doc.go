// Package measure has the common parts of the benchmark's stages: figures, clocks, a load
// that runs in turns, and the run that collects the figures.
//
// A stage is a sibling package with two functions of the type [Stage]:
//
//	func Measure(ctx context.Context, r *measure.Run) error // its figures, each with its floor
//	func Growth(ctx context.Context, r *measure.Run) error  // its cost as the system grows
//
// Each function adds figures with [Run.Add] and reports progress with [Run.Step]. An error
// means that the stage could not be measured, or that the results were wrong: events lost,
// out of order or refused. A missed goal is not an error. [Run.Quick] asks for a few seconds
// instead of a minute or two.
//
// The command runs each stage in a separate process, so that processor time, memory and
// profile belong to one stage. Stages need no flags and no main package.
//
// Rules for reliable figures: floor and subject run in turns in the same process
// ([Alternate]), because the rate of a shared machine varies. A rate is given together with
// the processor time per operation, which varies less. A warm-up is not counted.
//
// A Run is for one goroutine, except Step. No goroutine outlives the call that started it.
package measure
