------------------------------- MODULE Commit -------------------------------
(* The commit of a unit of work in Cosmos DB (packages unitofwork and store/cosmos): the same
   transactional batch is sent again after a lost answer, and read back after a refusal.
   README.md explains it. Clients read the same aggregate and change it; one of them wins, and
   another may change it again. *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Clients,
  Attempts,     \* of one commit
  Commits,      \* of one client, one after the other
  WithEvent     \* a batch begins with the creation of an event, whose id is never used again

VARIABLES
  etag,         \* of the aggregate
  content,      \* <<client, commit>> of the last change of the aggregate
  events,       \* <<client, commit>> of the stored events
  applied,      \* how often each <<client, commit>> was stored: the truth, not in the code
  c             \* by client
vars == <<etag, content, events, applied, c>>

Nothing == <<0, 0>>
Names == Clients \X (1..Commits)
New(n) == [commit |-> n, base |-> 0, read |-> FALSE, sent |-> 0, flying |-> 0, unknown |-> FALSE, step |-> "begin", result |-> "none"]
Init ==
  /\ etag = 0 /\ content = Nothing /\ events = {} /\ applied = [n \in Names |-> 0]
  /\ c = [i \in Clients |-> New(1)]

Name(i) == <<i, c[i].commit>>
Read(i) ==
  /\ c[i].step = "begin"
  /\ c' = [c EXCEPT ![i].base = etag, ![i].step = "send"]
  /\ UNCHANGED <<etag, content, events, applied>>

Send(i) ==
  /\ c[i].step = "send" /\ c[i].sent < Attempts
  /\ c' = [c EXCEPT ![i].sent = @ + 1, ![i].flying = @ + 1, ![i].step = "wait"]
  /\ UNCHANGED <<etag, content, events, applied>>

(* The store: all operations or none. The creations come first, so a taken id is reported before
   a changed ETag. *)
Taken(i) == WithEvent /\ Name(i) \in events
Fits(i) == c[i].base = etag /\ ~Taken(i)
Store(i) ==
  /\ etag' = etag + 1 /\ content' = Name(i)
  /\ events' = IF WithEvent THEN events \cup {Name(i)} ELSE events
  /\ applied' = [applied EXCEPT ![Name(i)] = @ + 1]

Answered(i) == \* one request in flight arrives, and it is the one that the client waits for
  /\ c[i].step = "wait" /\ c[i].flying > 0
  /\ IF Fits(i)
       THEN Store(i) /\ c' = [c EXCEPT ![i].flying = @ - 1, ![i].step = "end", ![i].result = "stored"]
       ELSE /\ UNCHANGED <<etag, content, events, applied>>
            /\ c' = [c EXCEPT ![i].flying = @ - 1,
                 ![i].step = IF (IF WithEvent THEN Taken(i) ELSE c[i].unknown) THEN "read back" ELSE "end",
                 ![i].result = IF (IF WithEvent THEN Taken(i) ELSE c[i].unknown) THEN "none" ELSE "refused"]

Arrives(i) == \* a request whose answer is lost, perhaps long after the client stopped waiting
  /\ c[i].flying > 0
  /\ c' = [c EXCEPT ![i].flying = @ - 1]
  /\ IF Fits(i) THEN Store(i) ELSE UNCHANGED <<etag, content, events, applied>>

Timeout(i) ==
  /\ c[i].step = "wait"
  /\ c' = [c EXCEPT ![i].unknown = TRUE,
       ![i].step = IF c[i].sent < Attempts THEN "send" ELSE "end",
       ![i].result = IF c[i].sent < Attempts THEN "none" ELSE "unknown"]
  /\ UNCHANGED <<etag, content, events, applied>>

Throttled(i) == \* refused for the moment; the request is not applied
  /\ c[i].step = "wait" /\ c[i].flying > 0
  /\ c' = [c EXCEPT ![i].flying = @ - 1,
       ![i].step = IF c[i].sent < Attempts THEN "send" ELSE "end",
       ![i].result = IF c[i].sent < Attempts THEN "none" ELSE IF c[i].unknown THEN "unknown" ELSE "refused"]
  /\ UNCHANGED <<etag, content, events, applied>>

ReadBack(i, answered) == \* ContainerContext.readBack, of the document that was refused
  /\ c[i].step = "read back"
  /\ LET own == IF WithEvent THEN Name(i) \in events ELSE content = Name(i)
         again == ~answered /\ c[i].sent < Attempts \* without an answer the batch is sent again
         result == IF ~answered THEN IF again THEN "none" ELSE "unknown" ELSE IF own THEN "stored" ELSE "refused" IN
     c' = [c EXCEPT ![i].result = result, ![i].step = IF again THEN "send" ELSE "end", ![i].unknown = @ \/ ~answered]
  /\ UNCHANGED <<etag, content, events, applied>>

Again(i) == \* the next commit, after all requests of the one before have arrived
  /\ c[i].step = "end" /\ c[i].flying = 0 /\ c[i].commit < Commits
  /\ c' = [c EXCEPT ![i] = New(c[i].commit + 1)]
  /\ UNCHANGED <<etag, content, events, applied>>

Next == \E i \in Clients : Read(i) \/ Send(i) \/ Answered(i) \/ Arrives(i) \/ Timeout(i) \/ Throttled(i)
                            \/ ReadBack(i, TRUE) \/ ReadBack(i, FALSE) \/ Again(i)
Spec == Init /\ [][Next]_vars
Fair == Spec /\ \A i \in Clients : WF_vars(Read(i) \/ Send(i) \/ Timeout(i) \/ ReadBack(i, TRUE) \/ ReadBack(i, FALSE) \/ Again(i))

----------------------------------------------------------------------------
Once == \A n \in Names : applied[n] <= 1
StoredIsStored == \A i \in Clients : c[i].result = "stored" => applied[Name(i)] = 1
(* Nothing is or will be stored. *)
RefusedIsNot == \A i \in Clients : c[i].result = "refused" => applied[Name(i)] = 0
UnknownIsHonest == \A i \in Clients : c[i].result = "unknown" => c[i].unknown \/ c[i].sent > 0
Together == WithEvent => \A n \in Names : (n \in events) = (applied[n] = 1)
Ends == \A i \in Clients : <>(c[i].step = "end" /\ c[i].commit = Commits)
=============================================================================
