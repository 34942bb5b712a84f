// Package operations provides the sections of the operators' page: now, ranges, parked
// keys, events, dead letters, the timeline of an aggregate, members, and the doctor.
//
// All data comes through a Port, over the operator's use cases, and from the metrics of the
// relays. One Reader per process reads for all tabs:
//
//	             no view requested    a view requested in the last 10 s
//	metrics      every 15 s           every 2 s
//	leases, lag  -                    every 2 s, but at most a fifth of the time
//	parked keys  -                    every 3 s, but at most a fifth of the time; those of consumers too
//	dead letters -                    for each view, which is not live
//
// So the load on store and relays does not depend on the number of tabs. The exceptions are
// the pages of one key, which read that key once a second for all tabs that show it. Lag
// comes from the metrics where relays report it; otherwise the Reader measures it on the
// feed, which costs one read per range.
//
// The list of events is read by each request, and only then. Its cost does not depend on the number of
// stored events. A page examines at most 1,000 events, and each store has a path to the newest ones:
//
//   - PostgreSQL: backward along the index of the feed (xid, hash), after the last event of the previous
//     page. 50 rows cost 50 rows. A period begins where a bisection of at most 64 index reads finds it.
//   - Cosmos DB: by periods, with the index of _ts. A period costs some 3 RU in each physical partition
//     and about 1 RU for 10 events of 1 KB. Without a filter, the first page reads some 3 to 10 periods,
//     a later one 1 or 2: 20 to 100 RU with one partition.
//   - Firestore: by periods, with the index of the feed (slot, at). A period costs one read, an event another.
//
// There is no index of actions and states. A rare one needs several pages, each of 1,000 events, or a
// period; parked events are listed from the parked ones. Events of a key are read by the key. An id is
// found by itself in Cosmos DB and Firestore; PostgreSQL needs the key as well, or examines.
//
// The Reader keeps 15 minutes of numbers and the latest changes of ownership in memory of a
// fixed size, and truncates the errors of parked keys.
//
// A read is current until it fails, or for some seconds (Source). A view after a pause of the reads
// waits for new ones. What is not current is shown as a dash with the age of the last known value; no
// state is good then, and curves have a gap. The verdict of Now is one function of an Overview.
//
// Acts write the same as the feedbox commands: a note with name and reason on a gate or a lease,
// which a relay carries out. Package page also logs each act.
package operations
