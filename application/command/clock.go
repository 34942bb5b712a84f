package command

import "time"

// Clock tells the time, such as time.Now. It is safe for concurrent use.
type Clock func() time.Time
