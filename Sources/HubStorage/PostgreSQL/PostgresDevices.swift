import HubCore
import NotificationHubs
import SQLDatabase

/// A row of `registration`, with the columns that writing needs.
struct PostgresRegistrationRow {
  let hub: Hub.ID
  let slot: Int64
  let number: RegistrationID
  /// 0 for a registration that a client has written.
  let installation: Int64
  let key: RegistrationKey
  let platform: Int64
  let handle: String
  let handleHash: Int64

  static let columns = """
    r.hub, r.slot, r.id, r.installation, r.template IS NULL, r.name, r.tile, r.platform, r.handle,
    r.handle_hash
    """

  /// - Parameter row: Selected with ``columns``.
  init(_ row: borrowing Statement) {
    hub = row.integer(0)
    slot = row.integer(1)
    number = row.integer(2)
    installation = row.integer(3)
    key = RegistrationKey(
      isNative: row.integer(4) != 0, name: row.optionalText(5), tile: row.optionalText(6))
    platform = row.integer(7)
    handle = row.text(8)
    handleHash = row.integer(9)
  }
}

/// A registration as its row will contain it; a class because a batch hands it on several times.
final class RegistrationContent: Sendable {
  let key: RegistrationKey
  let platform: Int64
  /// See ``PushTemplate/stored``; `nil` for a native registration.
  let template: [UInt8]?
  let handle: String
  let handleHash: Int64
  let variables: [UInt8]?
  /// The plain tags, as an array literal.
  let tags: String
  let expiresAt: Int64?

  convenience init(_ draft: RegistrationDraft, hub: Hub.ID) {
    self.init(PreparedRegistration(draft, hub: hub))
  }

  init(_ prepared: PreparedRegistration) {
    key = prepared.key
    platform = prepared.platform
    template = prepared.template?.stored
    handle = prepared.handle
    handleHash = prepared.handleHash
    variables = prepared.variables
    tags = PostgresArray.literal(prepared.tags.filter { $0.kind == .plain }.map(\.name))
    expiresAt = prepared.expiresAt
  }
}

/// Changes of a transaction to registrations, written in a few statements whatever their number.
struct RegistrationChanges {
  struct New {
    let number: RegistrationID
    let slot: Int64
    /// `nil` when the id follows from the number.
    var publicID: String?
    let context: RegistrationContext
    let content: RegistrationContent
  }

  struct Change {
    let row: PostgresRegistrationRow
    let context: RegistrationContext
    let content: RegistrationContent

    /// Whether the handle has changed, or only now becomes active.
    fileprivate var hasMoved: Bool {
      row.handleHash != content.handleHash || row.handle != content.handle || !row.key.isNative
    }
  }

  var new: [New] = []
  var changed: [Change] = []
  var removed: [PostgresRegistrationRow] = []
  /// Handles and installations for which removed registrations must not be restored.
  var forgottenHandles: Set<DeviceHandle> = []
  var forgottenInstallations: [(hub: Hub.ID, slot: Int64, number: Int64)] = []

  /// A handle's hash, with its hub.
  struct DeviceHandle: Hashable {
    let hub: Hub.ID
    let hash: Int64
  }

  /// Registrations that get a handle, or whose handle only now becomes active.
  fileprivate var gainedHandles: [HandleRow] {
    new.map { HandleRow($0.context, $0.content, number: $0.number) }
      + changed.filter(\.hasMoved).map {
        HandleRow($0.context, $0.content, number: $0.row.number)
      }
  }
}

extension HandleRow {
  fileprivate init(
    _ context: RegistrationContext, _ content: RegistrationContent, number: RegistrationID
  ) {
    self.init(
      hub: context.hub, hash: content.handleHash, number: number, isNative: content.key.isNative)
  }
}

/// Rows of registrations: reads, locks and changes them, for installations and registrations alike.
struct PostgresDevices: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// Keys that serialize the writers of a device; see ``lock(_:)``.
  enum DeviceLock {
    /// The key of an installation, or of a registration that a client writes.
    /// - Parameter hash: The hash of the id.
    static func device(hub: Hub.ID, hash: Int64) -> Int64 { (hash ^ hub &* 0x9E37_79B9) | .min }

    /// The key of everything that has a handle. These follow all devices in the lock order: a
    /// holder of a device's lock may go on to lock the handles that the device gets.
    static func handle(hash: Int64) -> Int64 { hash & .max }
  }

  /// Takes locks until the transaction ends, in a global order that rules out deadlocks.
  func lock(_ keys: some Collection<Int64>) throws {
    let sorted = Set(keys).sorted()
    guard !sorted.isEmpty else { return }
    try execute(
      "SELECT count(pg_advisory_xact_lock(key)) FROM unnest(?1::int8[]) AS key",
      PostgresArray.int8(sorted))
  }

  // MARK: Reading

  func registrationRows(
    ofInstallations numbers: [(hub: Hub.ID, number: Int64)]
  ) throws -> [PostgresRegistrationRow] {
    guard !numbers.isEmpty else { return [] }
    let row = try connection.statement(
      """
      SELECT \(PostgresRegistrationRow.columns)
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[]) AS w (hub, slot, installation)
      JOIN registration r ON r.hub = w.hub AND r.slot = w.slot AND r.installation = w.installation
        AND r.installation <> 0
      ORDER BY r.id
      """, PostgresArray.int8(numbers.map(\.hub)),
      PostgresArray.int2(numbers.map { slots.slot(ofNumber: $0.number) }),
      PostgresArray.int8(numbers.map(\.number)))
    return try rows(row)
  }

  func registrationRow(_ number: RegistrationID, hub: Hub.ID) throws -> PostgresRegistrationRow? {
    try rows(
      try connection.statement(
        """
        SELECT \(PostgresRegistrationRow.columns) FROM registration r
        WHERE hub = ?1 AND slot = ?2 AND id = ?3
        """, hub, slots.slot(ofNumber: number), number)
    ).first
  }

  func rows(_ row: borrowing Statement) throws -> [PostgresRegistrationRow] {
    var rows: [PostgresRegistrationRow] = []
    while try row.step() { rows.append(PostgresRegistrationRow(row)) }
    return rows
  }

  // MARK: Writing

  /// Writes changes whose devices and new handles are locked.
  /// - Parameter more: Runs statements that are sent in the same pipeline, before these.
  func apply(_ changes: RegistrationChanges, after more: () throws -> Void = {}) throws {
    for new in changes.new {
      session.tally.addRegistrations(1, hub: new.context.hub, platform: new.content.platform)
    }
    for change in changes.changed where change.row.platform != change.content.platform {
      session.tally.addRegistrations(-1, hub: change.context.hub, platform: change.row.platform)
      session.tally.addRegistrations(1, hub: change.context.hub, platform: change.content.platform)
    }
    for row in changes.removed {
      session.tally.addRegistrations(-1, hub: row.hub, platform: row.platform)
    }
    try PostgresHandles(session).markShared(changes.gainedHandles) {
      try more()
      try forgetRemoved(changes)
      try remove(changes.removed)
      try change(changes.changed)
      try insert(changes.new)
    }
  }

  private func bindPlaces(
    of rows: [PostgresRegistrationRow], to statement: borrowing Statement
  ) throws {
    try statement.bind(PostgresArray.int8(rows.map(\.hub)), at: 1)
    try statement.bind(PostgresArray.int2(rows.map(\.slot)), at: 2)
    try statement.bind(PostgresArray.int8(rows.map(\.number)), at: 3)
  }

  private func remove(_ rows: [PostgresRegistrationRow]) throws {
    guard !rows.isEmpty else { return }
    let row = try connection.statement(
      """
      DELETE FROM registration r USING unnest(?1::int8[], ?2::int2[], ?3::int8[]) AS w (hub, slot, id)
      WHERE r.hub = w.hub AND r.slot = w.slot AND r.id = w.id
      """)
    try bindPlaces(of: rows, to: row)
    try row.run()
    try PostgresHandles(session).removeHandles(rows.map { HandleRow($0) })
  }

  private func change(_ changes: [RegistrationChanges.Change]) throws {
    guard !changes.isEmpty else { return }
    let row = try connection.statement(
      """
      UPDATE registration r SET name = w.name, tile = w.tile, tag_text = w.tag_text,
        platform = w.platform, template = w.template, handle = w.handle,
        handle_hash = w.handle_hash, variables = w.variables, tags = w.tags::text[],
        expires_at = w.expires_at, confirmed_at = w.confirmed_at, etag = r.etag + 1,
        confirmed = pg_current_xact_id(), written = pg_current_xact_id()
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], \(Self.contentArrays(from: 4)))
        AS w (hub, slot, id, \(Self.contentColumns))
      WHERE r.hub = w.hub AND r.slot = w.slot AND r.id = w.id
      """)
    try bindPlaces(of: changes.map(\.row), to: row)
    try bind(changes.map { ($0.context, $0.content) }, to: row, from: 4)
    try row.run()
    try PostgresHandles(session).changeHandles(
      changes.map { (HandleRow($0.row), $0.content.handleHash, $0.content.key.isNative) })
  }

  private func insert(_ new: [RegistrationChanges.New]) throws {
    guard !new.isEmpty else { return }
    let row = try connection.statement(
      Self.insertion, PostgresArray.int8(new.map(\.context.hub)),
      PostgresArray.int2(new.map(\.slot)),
      PostgresArray.int8(new.map(\.number)), PostgresArray.int8(new.map(\.context.installation)),
      PostgresArray.text(new.map(\.publicID)))
    try bind(new.map { ($0.context, $0.content) }, to: row, from: 6)
    try row.run()
    try PostgresHandles(session).addHandles(
      new.map { HandleRow($0.context, $0.content, number: $0.number) })
  }

  /// The arrays are expanded in the select list, row by row: of a table function the server first
  /// stores each array.
  private static let insertion = """
    INSERT INTO registration (hub, slot, id, installation, public_id, etag, \(contentColumns))
    SELECT unnest(?1::int8[]), unnest(?2::int2[]), unnest(?3::int8[]), unnest(?4::int8[]),
      unnest(?5::text[]), 1,
      \(contentArrays(from: 6) { $0 == "tags" ? "unnest(\($1))::text[]" : "unnest(\($1))" })
    """

  private static let contentColumns = content.map(\.column).joined(separator: ", ")

  /// The columns that a write replaces, with the types of their values here.
  private static let content: [(column: String, type: String)] = [
    ("name", "text"), ("tile", "text"), ("tag_text", "text"), ("platform", "int2"),
    ("template", "bytea"), ("handle", "text"), ("handle_hash", "int8"), ("variables", "bytea"),
    ("tags", "text"), ("expires_at", "int8"), ("confirmed_at", "int8"),
  ]

  private static func contentArrays(
    from first: Int, as form: (_ column: String, _ array: String) -> String = { $1 }
  ) -> String {
    content.enumerated().map { index, content in
      form(content.column, "?\(first + index)::\(content.type)[]")
    }.joined(separator: ", ")
  }

  private func bind(
    _ rows: [(context: RegistrationContext, content: RegistrationContent)],
    to row: borrowing Statement, from index: Int32
  ) throws {
    try row.bind(PostgresArray.text(rows.map(\.content.key.name)), at: index)
    try row.bind(PostgresArray.text(rows.map(\.content.key.tile)), at: index + 1)
    try row.bind(PostgresArray.text(rows.map(\.context.tagText)), at: index + 2)
    try row.bind(PostgresArray.int2(rows.map(\.content.platform)), at: index + 3)
    try row.bind(PostgresArray.bytes(rows.map(\.content.template)), at: index + 4)
    try row.bind(PostgresArray.text(rows.map(\.content.handle)), at: index + 5)
    try row.bind(PostgresArray.int8(rows.map(\.content.handleHash)), at: index + 6)
    try row.bind(PostgresArray.bytes(rows.map(\.content.variables)), at: index + 7)
    try row.bind(PostgresArray.text(rows.map(\.content.tags)), at: index + 8)
    try row.bind(PostgresArray.int8(rows.map(\.content.expiresAt)), at: index + 9)
    try row.bind(PostgresArray.int8(rows.map(\.context.at)), at: index + 10)
  }

  private func forgetRemoved(_ changes: RegistrationChanges) throws {
    if !changes.forgottenHandles.isEmpty {
      let handles = changes.forgottenHandles.sorted { $0.hash < $1.hash }
      try execute(
        """
        DELETE FROM removed_registration r USING unnest(?1::int8[], ?2::int8[]) AS w (hub, hash)
        WHERE r.hub = w.hub AND r.handle_hash = w.hash
        """, PostgresArray.int8(handles.map(\.hub)), PostgresArray.int8(handles.map(\.hash)))
    }
    if !changes.forgottenInstallations.isEmpty {
      let places = changes.forgottenInstallations
      try execute(
        """
        DELETE FROM removed_registration r
        USING unnest(?1::int8[], ?2::int2[], ?3::int8[]) AS w (hub, slot, installation)
        WHERE r.hub = w.hub AND r.slot = w.slot AND r.installation = w.installation
          AND r.installation <> 0
        """, PostgresArray.int8(places.map(\.hub)), PostgresArray.int2(places.map(\.slot)),
        PostgresArray.int8(places.map(\.number)))
    }
  }
}
