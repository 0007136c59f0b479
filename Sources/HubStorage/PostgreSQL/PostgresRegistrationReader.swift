import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// Reads whole registrations: their rows, and the drafts from the installations that derived them.
/// Valid for one transaction.
final class PostgresRegistrationReader {
  private let session: PostgresSession
  /// The drafts that installations derive, by the number of the installation.
  private var drafts: [Int64: [RegistrationDraft]] = [:]

  init(session: PostgresSession) { self.session = session }

  /// A registration with the columns of its row that writing needs.
  struct Found {
    let row: PostgresRegistrationRow
    let stored: StoredRegistration
    /// The column; `nil` until a push has determined it.
    let environment: Int64?
    /// The time when it was last written, or confirmed unchanged.
    let confirmedAt: Date

    func isOver(at now: Date) -> Bool { stored.draft.expiresAt.map { $0 <= now } ?? false }
  }

  static let columns = """
    \(PostgresRegistrationRow.columns), r.etag, r.expires_at, r.variables, r.public_id, r.tag_text,
    r.template, r.environment, r.confirmed_at
    """

  func registration(_ number: RegistrationID, hub: Hub.ID) throws -> Found? {
    let row = try session.connection.statement(
      "SELECT \(Self.columns) FROM registration r WHERE hub = ?1 AND slot = ?2 AND id = ?3", hub,
      session.slots.slot(ofNumber: number), number)
    return try row.step() ? try found(row) : nil
  }

  /// The registration with an id that clients use, expired or not.
  func registration(_ id: String, hub: Hub.ID) throws -> Found? {
    if let number = session.coding.number(in: id, hub: hub) {
      return try registration(number, hub: hub)
    }
    let row = try session.connection.statement(
      "SELECT \(Self.columns) FROM registration r WHERE hub = ?1 AND slot = ?2 AND public_id = ?3",
      hub, session.slots.slot(of: id), id)
    if try row.step() { return try found(row) }
    // A registration of an installation that was moved here has its old id, and is in the slot of
    // the installation.
    let moved = try session.connection.statement(
      """
      SELECT \(Self.columns) FROM generate_series(0, \(session.slots.count - 1)) AS s (slot),
        LATERAL (SELECT * FROM registration o
          WHERE o.hub = ?1 AND o.slot = s.slot::int2 AND o.public_id = ?2) AS r
      """, hub, id)
    return try moved.step() ? try found(moved) : nil
  }

  /// - Parameter columns: Selected with ``columns``.
  func found(_ columns: borrowing Statement) throws -> Found {
    let row = PostgresRegistrationRow(columns)
    let publicID = columns.optionalText(13)
    let draft: RegistrationDraft
    if let tags = columns.optionalText(14) {
      draft = try written(row, columns, tags: tags)
    } else if let derived = try drafts(of: row).first(where: { $0.key == row.key }) {
      draft = derived
    } else {
      throw StoreError.corrupt("registration \(row.number) does not fit its installation")
    }
    return Found(
      row: row,
      stored: StoredRegistration(
        number: row.number, id: publicID ?? session.coding.id(of: row.number, hub: row.hub),
        draft: draft, etag: columns.integer(10), isDerived: row.installation != 0),
      environment: columns.optionalInteger(16),
      confirmedAt: Date(milliseconds: columns.integer(17)))
  }

  private func written(
    _ row: PostgresRegistrationRow, _ columns: borrowing Statement, tags: String
  ) throws -> RegistrationDraft {
    let platform = try PushPlatform(code: row.platform)
    var variables: [String: String] = [:]
    if let bytes = columns.optionalBytes(12) {
      var reader = ByteReader(bytes)
      variables = try reader.words()
    }
    let kind: RegistrationDraft.Kind =
      if let template = columns.optionalBytes(15) {
        .template(try PushTemplate(stored: template), name: row.key.name)
      } else { .native }
    return RegistrationDraft(
      kind: kind, platform: platform, channel: PushChannel(stored: row.handle, platform: platform),
      tags: tags.split(separator: ",").map { Tag(rawValue: String($0)) }, pushVariables: variables,
      expiresAt: columns.optionalInteger(11).map { Date(milliseconds: $0) },
      secondaryTileName: row.key.tile)
  }

  private func drafts(of row: PostgresRegistrationRow) throws -> [RegistrationDraft] {
    if let known = drafts[row.installation] { return known }
    let drafts =
      try PostgresInstallations(session).installation(row.installation, hub: row.hub)?
      .registrationDrafts ?? []
    self.drafts[row.installation] = drafts
    return drafts
  }
}
