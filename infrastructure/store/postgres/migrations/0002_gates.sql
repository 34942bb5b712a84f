-- A gate becomes one document, as in other stores. Members used in conditions stay columns.
ALTER TABLE gates ADD COLUMN data json;
UPDATE gates SET data = json_build_object('closing', closing, 'intent', intent, 'passed', json_build_object('sequence', progress_sequence, 'lsn', progress_lsn),
	'events', events, 'last', last, 'sequence', sequence, 'attempts', attempts, 'error', error, 'triedAt', tried_at);
ALTER TABLE gates ALTER COLUMN data SET NOT NULL,
	DROP COLUMN closing, DROP COLUMN intent, DROP COLUMN progress_sequence, DROP COLUMN progress_lsn, DROP COLUMN events, DROP COLUMN last,
	DROP COLUMN sequence, DROP COLUMN attempts, DROP COLUMN error, DROP COLUMN tried_at;
