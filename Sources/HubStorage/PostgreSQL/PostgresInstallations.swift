import Foundation
import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// An installation to be written, and the task that waits for it.
final class InstallationWork: QueuedJob, @unchecked Sendable {  // adds constants only
  let content: InstallationContent
  let resume: @Sendable () -> Void
  let fail: @Sendable (any Error) -> Void

  init(
    content: InstallationContent, resume: @escaping @Sendable () -> Void,
    fail: @escaping @Sendable (any Error) -> Void
  ) {
    self.content = content
    self.resume = resume
    self.fail = fail
  }
}

/// An installation with everything that can be computed before a writing thread takes it; a class
/// because a batch hands it on several times.
final class InstallationContent: Sendable {
  let hub: Hub.ID
  let id: String
  let idHash: Int64
  let slot: Int64
  let userHash: Int64?
  let fingerprint: Int64
  /// See ``PreparedInstallation/storedFingerprint``.
  let storedFingerprint: Int64
  let document: [UInt8]
  let expiresAt: Int64?
  let registrations: [RegistrationContent]
  /// The keys of ``registrations``' handles, and those with the device's own.
  let handleLocks: Set<Int64>
  let locks: Set<Int64>
  /// Milliseconds since 1970.
  let at: Int64
  /// The label under which it queues.
  let label: JobLabel

  init(
    _ installation: Installation, registrations: [RegistrationDraft], hub: Hub.ID, at: Date,
    shared: PostgresShared
  ) {
    let slots = shared.slots
    let prepared = PreparedInstallation(
      installation, registrations: registrations, hash: shared.coding.contentHash, hub: hub, at: at)
    self.hub = hub
    id = prepared.id
    idHash = prepared.idHash
    slot = slots.slot(of: id)
    userHash = prepared.userHash
    fingerprint = prepared.fingerprint
    storedFingerprint = prepared.storedFingerprint
    document = InstallationDocument.encode(installation)
    expiresAt = prepared.expiresAt
    self.registrations = prepared.registrations.map(RegistrationContent.init)
    handleLocks = Set(
      self.registrations.map { PostgresDevices.DeviceLock.handle(hash: $0.handleHash) })
    locks = handleLocks.union([PostgresDevices.DeviceLock.device(hub: hub, hash: idHash)])
    self.at = prepared.at
    label = prepared.registrations.label
  }
}

/// A row of `installation`, without its document.
struct PostgresInstallationRow {
  let number: Int64
  let fingerprint: Int64
}

/// Writes installations, many in one transaction.
struct PostgresInstallations: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  func installationRow(_ id: String, hub: Hub.ID) throws -> PostgresInstallationRow? {
    let row = try connection.statement(
      "SELECT id, fingerprint FROM installation WHERE hub = ?1 AND slot = ?2 AND public_id = ?3",
      hub, slots.slot(of: id), id)
    guard try row.step() else { return nil }
    return PostgresInstallationRow(number: row.integer(0), fingerprint: row.integer(1))
  }

  /// The installation with a number.
  func installation(_ number: Int64, hub: Hub.ID) throws -> Installation? {
    let row = try connection.statement(
      "SELECT public_id, document FROM installation WHERE hub = ?1 AND slot = ?2 AND id = ?3", hub,
      slots.slot(ofNumber: number), number)
    guard try row.step() else { return nil }
    return try InstallationDocument.decode(row.bytes(1), id: row.text(0))
  }

  // MARK: Batches

  /// Maximum number of locks in a transaction that could be split: the server's lock table has room
  /// for some 6000, which all hubs and nodes share.
  static let lockLimit = 512

  /// Writes all waiting installations in as few transactions as the lock limit allows; the callers
  /// are resumed once theirs is durable.
  func perform(_ works: [InstallationWork]) {
    var batch: [InstallationWork] = []
    var locks: Set<Int64> = []
    for work in works {
      let more = work.content.locks
      if !batch.isEmpty, locks.count + more.count > Self.lockLimit {
        performTogether(batch)
        (batch, locks) = ([], [])
      }
      batch.append(work)
      locks.formUnion(more)
    }
    if !batch.isEmpty { performTogether(batch) }
  }

  /// Writes a batch. If a value or a conflict makes it fail, it is written in halves, so that one
  /// installation cannot fail the others, nor cost each of them a transaction.
  /// - Returns: The error with which all of it has failed; `nil` if it was written or divided.
  @discardableResult
  private func performTogether(_ works: [InstallationWork]) -> (any Error)? {
    do {
      try session.retrying(unclear: .again) {
        let refused = try put(works.map(\.content))
        return {
          for (index, work) in works.enumerated() {
            if let refusal = refused[index] { work.fail(refusal) } else { work.resume() }
          }
        }
      }()
      return nil
    } catch {
      let kind = (error as? SQLError)?.kind
      guard works.count > 1, !connection.isLost, Self.mayConcernOne(kind) else {
        for work in works { work.fail(PostgresRefusal.answer(error)) }
        return error
      }
      if kind == .locked {
        performOneByOne(works)
      } else {
        let half = (works.count + 1) / 2
        performTogether(Array(works[..<half]))
        performTogether(Array(works[half...]))
      }
      return nil
    }
  }

  /// Whether the others of a batch may succeed: not if the disk is full, for example.
  private static func mayConcernOne(_ kind: SQLError.Kind?) -> Bool {
    switch kind {
    case nil, .unfitValue, .constraint, .conflict, .locked, .other: true
    default: false
    }
  }

  /// Writes a batch in which a lock's timeout has ended: each part with the locked one would wait for
  /// the timeout again. A hub with two timeouts is locked itself; the rest of it fails at once, so
  /// that the other hubs do not wait for it.
  private func performOneByOne(_ works: [InstallationWork]) {
    var timeouts: [Hub.ID: Int] = [:]
    for work in works {
      if timeouts[work.content.hub, default: 0] >= 2 {
        work.fail(StoreError.locked)
      } else if let error = performTogether([work]) as? SQLError, error.kind == .locked {
        timeouts[work.content.hub, default: 0] += 1
      }
    }
  }

  /// Creates or replaces installations in a transaction; of unchanged ones it only records that
  /// they were seen.
  ///
  /// - Returns: The errors of those that are refused, by their indexes.
  private func put(_ all: [InstallationContent]) throws -> [Int: StoreError] {
    let rounds = Self.rounds(of: all)
    let hubs = Set(all.map(\.hub)).sorted()
    let present = try connection.statement(
      "SELECT id FROM hub WHERE id = ANY(?1::int8[])", PostgresArray.int8(hubs))
    let found = try connection.statement(
      """
      SELECT w.n, i.id, i.fingerprint
      FROM unnest(?1::int8[], ?2::int2[], ?3::text[]) WITH ORDINALITY AS w (hub, slot, public_id, n)
      JOIN installation i ON i.hub = w.hub AND i.slot = w.slot AND i.public_id = w.public_id
      """)
    // The reads of the first round are sent with the locks: each statement sees what was committed
    // before it began.
    return try session.transaction(
      preparing: {
        for hub in hubs { try lockHub(hub) }
        try PostgresDevices(session).lock(all.flatMap(\.locks))
        try present.run()
        try bind(rounds[0].map { all[$0] }, to: found)
        try found.run()
      },
      {
        var known: Set<Hub.ID> = []
        while try present.step() { known.insert(present.integer(0)) }
        var refused: [Int: StoreError] = [:]
        for (number, round) in rounds.enumerated() {
          if number > 0 {
            found.reset()
            try bind(round.map { all[$0] }, to: found)
          }
          var rows = [PostgresInstallationRow?](repeating: nil, count: round.count)
          while try found.step() {
            rows[Int(found.integer(0)) - 1] = PostgresInstallationRow(
              number: found.integer(1), fingerprint: found.integer(2))
          }
          var contents: [(InstallationContent, PostgresInstallationRow?)] = []
          for (index, row) in zip(round, rows) {
            if known.contains(all[index].hub) {
              contents.append((all[index], row))
            } else {
              refused[index] = .noHub
            }
          }
          try putRound(contents)
        }
        return refused
      })
  }

  private struct InstallationKey: Hashable {
    let hub: Hub.ID
    let id: String
  }

  /// A device may occur more than once, so each round takes it once.
  /// - Returns: The indexes of each round, in order.
  private static func rounds(of all: [InstallationContent]) -> [[Int]] {
    var rounds: [[Int]] = [[]]
    var seen: [InstallationKey: Int] = [:]
    for (index, content) in all.enumerated() {
      let round = seen[InstallationKey(hub: content.hub, id: content.id), default: 0]
      seen[InstallationKey(hub: content.hub, id: content.id)] = round + 1
      if round == rounds.count { rounds.append([]) }
      rounds[round].append(index)
    }
    return rounds
  }

  private func putRound(
    _ round: [(content: InstallationContent, row: PostgresInstallationRow?)]
  ) throws {
    var same: [(InstallationContent, Int64)] = []
    var other: [(InstallationContent, PostgresInstallationRow?)] = []
    for (content, row) in round {
      if let row, row.fingerprint == content.fingerprint {
        same.append((content, row.number))
      } else {
        other.append((content, row))
      }
    }
    try confirm(same)
    // The apps have registered again, so nothing removed before is restored.
    try write(other, forgettingRemoved: true)
  }

  private func bind(_ round: [InstallationContent], to row: borrowing Statement) throws {
    try row.bind(PostgresArray.int8(round.map(\.hub)), at: 1)
    try row.bind(PostgresArray.int2(round.map(\.slot)), at: 2)
    try row.bind(PostgresArray.text(round.map(\.id)), at: 3)
  }

  private func confirm(_ seen: [(content: InstallationContent, number: Int64)]) throws {
    guard !seen.isEmpty else { return }
    try execute(
      """
      UPDATE registration r SET confirmed_at = w.at, confirmed = pg_current_xact_id()
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], ?4::int8[]) AS w (hub, slot, installation, at)
      WHERE r.hub = w.hub AND r.slot = w.slot AND r.installation = w.installation
        AND r.installation <> 0
      """, PostgresArray.int8(seen.map(\.content.hub)),
      PostgresArray.int2(seen.map(\.content.slot)), PostgresArray.int8(seen.map(\.number)),
      PostgresArray.int8(seen.map(\.content.at)))
  }

  /// Writes installations, each at most once, and derives their registrations.
  /// - Parameter forgettingRemoved: Whether their removed registrations can no longer be restored.
  func write(
    _ contents: [(content: InstallationContent, row: PostgresInstallationRow?)],
    forgettingRemoved: Bool
  ) throws {
    guard !contents.isEmpty else { return }
    var changes = RegistrationChanges()
    var new: [(InstallationContent, Int64)] = []
    var changed: [(InstallationContent, Int64)] = []
    let known = contents.compactMap { content, row in row.map { (content.hub, $0.number) } }
    var old = Dictionary(
      grouping: try PostgresDevices(session).registrationRows(ofInstallations: known),
      by: \.installation)
    for (content, row) in contents {
      let number: Int64
      if let row {
        number = row.number
        changed.append((content, number))
        if forgettingRemoved {
          changes.forgottenInstallations.append((content.hub, content.slot, number))
        }
      } else {
        number = slots.number(
          try shared.numbers.next(.installation, session), slot: content.slot)
        new.append((content, number))
      }
      let context = RegistrationContext(hub: content.hub, installation: number, at: content.at)
      var rows = old.removeValue(forKey: number) ?? []
      for registration in content.registrations {
        changes.forgottenHandles.insert(
          .init(hub: content.hub, hash: registration.handleHash))
        if let index = rows.firstIndex(where: { $0.key == registration.key }) {
          changes.changed.append(
            .init(row: rows.remove(at: index), context: context, content: registration))
        } else {
          let registrationNumber = slots.number(
            try shared.numbers.next(.registration, session), slot: content.slot)
          changes.new.append(
            .init(
              number: registrationNumber, slot: content.slot, context: context,
              content: registration))
        }
      }
      changes.removed += rows
    }
    try PostgresDevices(session).apply(changes) {
      try insertInstallations(new)
      try changeInstallations(changed)
    }
  }

  private func insertInstallations(_ new: [(content: InstallationContent, number: Int64)]) throws {
    guard !new.isEmpty else { return }
    try execute(
      """
      INSERT INTO installation (hub, slot, id, public_id, user_hash, fingerprint, document,
        expires_at)
      SELECT * FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], ?4::text[], ?5::int8[], ?6::int8[],
        ?7::bytea[], ?8::int8[])
      """, PostgresArray.int8(new.map(\.content.hub)), PostgresArray.int2(new.map(\.content.slot)),
      PostgresArray.int8(new.map(\.number)),
      PostgresArray.text(new.map { Optional($0.content.id) }),
      PostgresArray.int8(new.map(\.content.userHash)),
      PostgresArray.int8(new.map(\.content.storedFingerprint)),
      PostgresArray.bytes(new.map { Optional($0.content.document) }),
      PostgresArray.int8(new.map(\.content.expiresAt)))
  }

  private func changeInstallations(
    _ changed: [(content: InstallationContent, number: Int64)]
  ) throws {
    guard !changed.isEmpty else { return }
    try execute(
      """
      UPDATE installation i SET user_hash = w.user_hash, fingerprint = w.fingerprint,
        document = w.document, expires_at = w.expires_at
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], ?4::int8[], ?5::int8[], ?6::bytea[],
        ?7::int8[]) AS w (hub, slot, id, user_hash, fingerprint, document, expires_at)
      WHERE i.hub = w.hub AND i.slot = w.slot AND i.id = w.id
      """, PostgresArray.int8(changed.map(\.content.hub)),
      PostgresArray.int2(changed.map(\.content.slot)), PostgresArray.int8(changed.map(\.number)),
      PostgresArray.int8(changed.map(\.content.userHash)),
      PostgresArray.int8(changed.map(\.content.storedFingerprint)),
      PostgresArray.bytes(changed.map { Optional($0.content.document) }),
      PostgresArray.int8(changed.map(\.content.expiresAt)))
  }

  /// Deletes installations with their registrations, and the removed ones that could be restored.
  func deleteInstallations(_ numbers: [(hub: Hub.ID, number: Int64)]) throws {
    guard !numbers.isEmpty else { return }
    var changes = RegistrationChanges()
    changes.removed = try PostgresDevices(session).registrationRows(ofInstallations: numbers)
    changes.forgottenInstallations = numbers.map {
      ($0.hub, slots.slot(ofNumber: $0.number), $0.number)
    }
    try PostgresDevices(session).apply(changes)
    try execute(
      """
      DELETE FROM installation i USING unnest(?1::int8[], ?2::int2[], ?3::int8[]) AS w (hub, slot, id)
      WHERE i.hub = w.hub AND i.slot = w.slot AND i.id = w.id
      """, PostgresArray.int8(numbers.map(\.hub)),
      PostgresArray.int2(numbers.map { slots.slot(ofNumber: $0.number) }),
      PostgresArray.int8(numbers.map(\.number)))
  }

  // MARK: Lists

  /// The next installations that match a filter, in the order of their numbers.
  func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: InstallationPosition?, limit: Int
  ) throws -> InstallationPage {
    guard limit > 0, try hasHub(hub) else { return InstallationPage() }
    var cursor = after ?? 0
    var page = InstallationPage()
    let usual = shared.options.stretch
    let stretch = filter.search == nil ? usual : min(usual, SearchBudget.rows)
    var budget = SearchBudget()
    // One more than needed tells whether there are more.
    let candidates: [Int64]
    if let user = filter.userID {
      candidates = try connection.numbers(
        """
        SELECT id FROM installation WHERE hub = ?1 AND user_hash = ?2 AND id > ?3
        ORDER BY id LIMIT ?4
        """, hub, PreparedInstallation.hash(user.foldingCapitals), cursor, Int64(stretch + 1))
    } else {
      candidates = try connection.numbers(
        """
        SELECT found.id FROM generate_series(0, ?4::int8 - 1) AS s (slot), LATERAL (
          SELECT id FROM installation WHERE hub = ?1 AND slot = s.slot::int2 AND id > ?2
          ORDER BY id LIMIT ?3) AS found
        ORDER BY found.id LIMIT ?3
        """, hub, cursor, Int64(stretch + 1), Int64(slots.count))
    }
    for (seen, number) in candidates.enumerated() {
      if page.isFull(limit) || seen == stretch || budget.isSpent {
        page.next = cursor
        break
      }
      cursor = number
      guard let installation = try installation(number, hub: hub) else { continue }
      if filter.search != nil { budget.take(bytes: installation.size) }
      if filter.matches(installation) { page.append(installation) }
    }
    return page
  }
}
