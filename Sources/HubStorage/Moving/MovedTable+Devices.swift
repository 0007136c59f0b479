import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// Devices. In a file their rows refer to templates and tags; in a database they are in slots and
/// contain everything.
///
/// A file's number is a database's without the slot, so that both have the same order. The public
/// id of a registration follows from its number only in its own database, so it is written out.
extension MovedTable {
  private static let ofHub = "t.hub IN (SELECT id FROM hub)"

  static let installations = MovedTable(
    "installation",
    MovedColumn.list(
      "id:i hub:i public_id:t user_hash:i fingerprint:i document:b expires_at:i"),
    order: MovedColumn.list("id:i"), where: ofHub,
    file: {
      // The moved document contains its templates.
      $0.finish = { row, session, _ in
        let installation = try InstallationDocument.decode(
          row["document"].bytes ?? [], id: row["public_id"].text ?? ""
        ) { try session.templates.template($0) }
        row["document"] = .bytes(InstallationDocument.encode(installation))
      }
      $0.write = { session, rows in
        for row in rows { try MovedDeviceWriter(session).insert(installation: row) }
      }
    },
    database: {
      $0.expressions = ["id": "t.id >> 8", "raw": "t.id"]
      $0.order = MovedColumn.list("hub:i slot:i raw:i")
      $0.write = { session, rows in
        let columns = MovedColumn.list(
          "hub:i slot:i id:i public_id:t user_hash:i fingerprint:i document:b expires_at:i")
        var form = Form<PostgresSession, PostgresSession>("installation")
        form.tables = ["installation"]
        try form.insert(
          rows.map { row in
            var row = row
            let number = session.slots.number(row["id"].integer ?? 0, in: row["public_id"].text)
            row["id"] = .integer(number)
            row["slot"] = .integer(session.slots.slot(ofNumber: number))
            return row
          }, columns, on: session.connection)
      }
    })

  /// The columns that live and removed registrations share.
  private static let registrationColumns = """
    id:i hub:i installation:i public_id:t etag:i name:t tile:t tag_text:t platform:i template:b
    handle:t handle_hash:i variables:b expires_at:i confirmed_at:i environment:i
    """

  static let registrations = MovedTable(
    "registration", MovedColumn.list(registrationColumns + " tags:b written:i"),
    order: MovedColumn.list("id:i"), where: ofHub,
    file: {
      readRegistrations(of: "registration", &$0)
      let finish = $0.finish
      $0.finish = { row, session, reading in
        try finish?(&row, session, reading)
        var numbers = ByteReader(row["tags"].bytes ?? [])
        let tags = try (0..<(try numbers.count())).compactMap { _ in
          try MovedDeviceReader(session).plainTag(try numbers.signedNumber())
        }
        row["tags"] = .bytes(tags.movedBytes)
        row["written"] = .integer(reading.rank(ofCommit: row["written"].integer ?? 0))
      }
      $0.write = { session, rows in
        for row in rows { try MovedDeviceWriter(session).insert(registration: row) }
      }
    },
    database: {
      readRegistrations(of: "registration", &$0)
      $0.kinds = ["tags": .texts]
      $0.expressions["written"] = "%rank"
      $0.write = { session, rows in
        try PostgresMovedDevices(session).insert(rows, into: "registration", "tags:t written:t") {
          row in
          row["tags"] = .text(
            PostgresArray.literal(try [String](moved: row["tags"].bytes ?? [])))
          row["written"] = .text(String(firstTransaction + (row["written"].integer ?? 0)))
        }
        try PostgresHandles(session).addHandles(
          rows.map { row in
            HandleRow(
              hub: row["hub"].integer ?? 0, hash: row["handle_hash"].integer ?? 0,
              number: PostgresMovedDevices(session).number(of: row),
              isNative: row["template"].isNull)
          })
      }
    })

  /// Registrations that a push service has reported dead, as long as they can be restored. Their
  /// tags are those that a client has written; otherwise tags are derived from the installation.
  static let removed = MovedTable(
    "removed_registration",
    MovedColumn.list(registrationColumns + " removed_at:i outcome:i new_handle:t"),
    order: MovedColumn.list("id:i"), where: ofHub,
    file: {
      readRegistrations(of: "removed_registration", &$0)
      $0.write = { session, rows in
        for row in rows { try MovedDeviceWriter(session).insert(removed: row) }
      }
    },
    database: {
      readRegistrations(of: "removed_registration", &$0)
      $0.write = { session, rows in
        try PostgresMovedDevices(session).insert(
          rows, into: "removed_registration", "tags:t removed_at:i outcome:i new_handle:t"
        ) { row in
          let tags = try row.writtenTags(kind: .template)
          row["tags"] = .text(
            PostgresArray.literal(tags.filter { $0.kind == .plain }.map(\.name)))
        }
      }
    })

  private static func readRegistrations(
    of table: String, _ form: inout Form<ReadSession, WriteSession>
  ) {
    form.from = """
      \(table) AS t LEFT JOIN installation i ON i.id = t.installation AND t.installation <> 0
      """
    form.expressions = ["place": "i.public_id"]
    form.extra = MovedColumn.list("place:t")
    form.kinds = ["template": .integer]
    form.finish = { row, session, reading in
      if let number = row["template"].integer {
        row["template"] = .bytes(try session.templates.template(number).stored)
      }
      row.writeOutID(of: row["id"].integer, reading.coding)
    }
  }

  private static func readRegistrations(
    of table: String, _ form: inout Form<PostgresSession, PostgresSession>
  ) {
    form.expressions = [
      "id": "t.id >> 8", "installation": "t.installation >> 8", "raw": "t.id",
    ]
    form.extra = MovedColumn.list("raw:i")
    form.order = MovedColumn.list("hub:i slot:i raw:i")
    form.finish = { row, _, reading in row.writeOutID(of: row["raw"].integer, reading.coding) }
  }

  /// The columns of an INSERT of a registration into a database.
  fileprivate static let databaseColumns = "slot:i " + registrationColumns
}

extension MovedRow {
  fileprivate mutating func writeOutID(of number: Int64?, _ coding: RegistrationIDCoding) {
    guard self["public_id"].isNull, let number, let hub = self["hub"].integer else { return }
    self["public_id"] = .text(coding.id(of: number, hub: hub))
  }

  fileprivate var hub: Hub.ID { self["hub"].integer ?? 0 }

  /// The tags of a registration that a client has written.
  fileprivate func writtenTags(kind: AudienceQuery.Kind) throws -> [TagKey] {
    guard let text = self["tag_text"].text else { return [] }
    return PreparedRegistration.tags(
      text.split(separator: ",").map { Tag(rawValue: String($0)) }, kind: kind, hub: hub)
  }

  /// The registration as a row of a file has it, except for its numbers.
  fileprivate func prepared() throws -> PreparedRegistration {
    let template = try self["template"].bytes.map { try PushTemplate(stored: $0) }
    let platform = try PushPlatform(code: self["platform"].integer ?? 0)
    let kind: AudienceQuery.Kind = template == nil ? .native(platform) : .template
    let tags = try [String](moved: self["tags"].bytes ?? [0])
    return PreparedRegistration(
      template: template,
      key: RegistrationKey(
        isNative: template == nil, name: self["name"].text, tile: self["tile"].text),
      platform: platform.code, handle: self["handle"].text ?? "",
      handleHash: self["handle_hash"].integer ?? 0, variables: self["variables"].bytes,
      tags: [.everyone(kind, hub: hub)] + tags.map { .plain($0, hub: hub) },
      expiresAt: self["expires_at"].integer)
  }
}

/// Tags of devices that are moved.
struct MovedDeviceReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// The name of a tag that clients gave; `nil` for an internal one, or a deleted one.
  fileprivate func plainTag(_ number: Int64) throws -> String? {
    let row = try connection.statement("SELECT name FROM tag WHERE id = ?1 AND kind = 0")
    try row.bind(number, at: 1)
    return try row.step() ? row.text(0) : nil
  }
}

/// Writes devices as they were, with everything derived from them.
struct MovedDeviceWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  fileprivate func insert(installation row: MovedRow) throws {
    let (number, id) = (row["id"].integer ?? 0, row["public_id"].text ?? "")
    let installation = try InstallationDocument.decode(row["document"].bytes ?? [], id: id)
    let document = try InstallationDocument.encode(installation) {
      try VocabularyWriter(session).templateNumber($0, hub: row.hub)
    }
    let idHash = PreparedInstallation.hash(id.foldingCapitals)
    try connection.change(
      """
      INSERT INTO installation (id, hub, id_hash, public_id, user_hash, fingerprint, document,
        expires_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
      """, number, row.hub, idHash, id, row["user_hash"], row["fingerprint"], document,
      row["expires_at"])
    try DeviceKeyWriter(session).addKey(.installation(idHash: idHash, hub: row.hub), of: number)
    if let user = row["user_hash"].integer {
      try DeviceKeyWriter(session).addKey(.user(hash: user, hub: row.hub), of: number)
    }
  }

  fileprivate func insert(registration row: MovedRow) throws {
    let number = try fileNumber(of: row)
    try RegistrationRowWriter(session).insert(
      try row.prepared(), as: number, publicID: row["public_id"].text,
      in: RegistrationContext(
        hub: row.hub, installation: row["installation"].integer ?? 0,
        at: row["confirmed_at"].integer ?? 0, tagText: row["tag_text"].text))
    // Pages that were read before must not affect it.
    try connection.change(
      """
      UPDATE registration SET etag = ?2, environment = ?3, written = ?4, revision = 0 WHERE id = ?1
      """, number, row["etag"], row["environment"], row["written"])
  }

  fileprivate func insert(removed row: MovedRow) throws {
    let template = try row["template"].bytes.map {
      try VocabularyWriter(session).templateNumber(try PushTemplate(stored: $0), hub: row.hub)
    }
    let isFoundByHandle = template == nil || row["tag_text"].isNull
    try connection.change(
      """
      INSERT INTO removed_registration (id, hub, installation, public_id, public_hash, etag, name,
        tile, tag_text, template_handle, platform, template, handle, handle_hash, variables, tags,
        expires_at, confirmed_at, environment, removed_at, outcome, new_handle)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
        ?20, ?21, ?22)
      """, try fileNumber(of: row), row.hub, row["installation"], row["public_id"],
      row["public_id"].text.map(PreparedInstallation.hash), row["etag"], row["name"], row["tile"],
      row["tag_text"], isFoundByHandle ? .null : row["handle_hash"], row["platform"], template,
      row["handle"], row["handle_hash"], row["variables"], RegistrationRow.encode(tags: []),
      row["expires_at"], row["confirmed_at"], row["environment"], row["removed_at"],
      row["outcome"], row["new_handle"])
  }

  private func fileNumber(of row: MovedRow) throws -> RegistrationID {
    guard let number = row["id"].integer, UInt32(exactly: number) != nil else {
      throw MoveRefusal.numbersUsed
    }
    return number
  }
}

/// Devices that are written to a database, each in its slot.
struct PostgresMovedDevices: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// The number that a registration gets here, in the slot of its installation, or else of its id.
  fileprivate func number(of row: MovedRow) -> RegistrationID {
    slots.number(row["id"].integer ?? 0, in: row["place"].text ?? row["public_id"].text)
  }

  /// - Parameters:
  ///   - columns: The columns of the table besides those that all registrations have.
  ///   - change: Sets their values in a row.
  fileprivate func insert(
    _ rows: [MovedRow], into table: String, _ columns: String,
    _ change: (inout MovedRow) throws -> Void
  ) throws {
    var form = MovedTable.Form<PostgresSession, PostgresSession>(table)
    form.written = ["tags": "?::text::text[]", "written": "?::text::xid8"]
    try form.insert(
      try rows.map { row in
        var row = row
        try change(&row)
        let number = number(of: row)
        row["slot"] = .integer(slots.slot(ofNumber: number))
        // Installations and their registrations are in the same slot.
        if let installation = row["installation"].integer, installation != 0 {
          row["installation"] = .integer(
            slots.number(installation, slot: slots.slot(ofNumber: number)))
        }
        row["id"] = .integer(number)
        return row
      }, MovedColumn.list(MovedTable.databaseColumns + " " + columns), on: connection)
  }
}
