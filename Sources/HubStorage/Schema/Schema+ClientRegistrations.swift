import SQLDatabase

extension Schema {
  /// Version 2: registrations that clients write themselves.
  @Sendable static func addClientRegistrations(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // `public_id` is null when the hub has made it, for then it follows from `id`; `public_hash`
      // is its hash. `tag_text` holds the tags as they were written; it is null when they follow
      // from the installation. `template_handle` repeats `handle_hash` for a template registration
      // that cannot be found through a native one of its installation.
      "ALTER TABLE registration ADD COLUMN public_id TEXT",
      "ALTER TABLE registration ADD COLUMN public_hash \(type.integer)",
      "ALTER TABLE registration ADD COLUMN tag_text TEXT",
      "ALTER TABLE registration ADD COLUMN template_handle \(type.integer)",
      """
      CREATE INDEX registration_public ON registration (hub, public_hash)
      WHERE public_hash IS NOT NULL
      """,
      """
      CREATE INDEX registration_template_handle ON registration (template_handle)
      WHERE template_handle IS NOT NULL
      """,
      // One row: the secret that the ids of registrations are made with.
      """
      CREATE TABLE registration_key (
        id \(type.rowNumber), first \(type.integer) NOT NULL, second \(type.integer) NOT NULL)
      """,
    ] {
      try connection.execute(sql)
    }
    let row = try connection.statement("INSERT INTO registration_key VALUES (1, ?1, ?2)")
    try row.bind(Int64.random(in: .min ... .max), at: 1)
    try row.bind(Int64.random(in: .min ... .max), at: 2)
    try row.run()
  }
}
