// Errors of tools. The model reads the message, and a caller can act on the kind.

/** A failure, with details for the model: members of a JSON object. */
export class Failed extends Error {
  constructor(message, details) {
    super(message);
    this.name = new.target.name;
    this.details = details;
  }

  get kind() {
    return "failed";
  }
}

/** The call is invalid; the caller can correct it. */
export class Invalid extends Failed {
  get kind() {
    return "invalid";
  }
}

/** The requested object does not exist. */
export class NotFound extends Failed {
  get kind() {
    return "not-found";
  }
}

/** The current state conflicts with the call. */
export class Conflict extends Failed {
  get kind() {
    return "conflict";
  }
}

/** An external service does not respond; a later call may succeed. */
export class Unavailable extends Failed {
  get kind() {
    return "unavailable";
  }
}

/** Errors by their kind. */
export const KINDS = {
  failed: Failed,
  invalid: Invalid,
  "not-found": NotFound,
  conflict: Conflict,
  unavailable: Unavailable,
};
