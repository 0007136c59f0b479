import Foundation
package import HubCore
package import HubStorage
import NotificationHubs
package import SQLDatabase

/// Seals for tests: the context and a key in front, every bit turned over. Opens only under one of
/// its keys and the same context, and hides the text from anyone who looks into the file.
package struct TestSealing: SecretSealing {
  private struct DoesNotOpen: Error {}
  private let ids: [String]

  /// - Parameter keys: The newest first.
  package init(keys: [String] = ["test key", "next key"]) { ids = keys }

  package func keys() -> [String] { ids }

  package func seal(_ plaintext: [UInt8], context: String, under key: String) throws -> [UInt8] {
    guard ids.contains(key) else { throw DoesNotOpen() }
    return head(of: key) + (Array("\(context)|".utf8) + plaintext).map { ~$0 }
  }

  package func open(_ sealed: [UInt8], context: String) throws -> [UInt8] {
    let prefix = head(of: try key(of: sealed, context: context)).count + context.utf8.count + 1
    return sealed.dropFirst(prefix).map { ~$0 }
  }

  package func key(of sealed: [UInt8], context: String) throws -> String {
    let prefix = Array("|\(context)|".utf8).map { ~$0 }
    let key = ids.first { sealed.starts(with: head(of: $0).dropLast() + prefix) }
    guard let key else { throw DoesNotOpen() }
    return key
  }

  package func head(of key: String) -> [UInt8] { Array("\(key)|".utf8).map { ~$0 } }
}

/// Runs `body` on a new SQLite store in a directory of its own, and removes both.
package func withTemporaryStore(
  options: SQLiteHubStore.Options = .init(),
  _ body: (SQLiteHubStore) async throws -> Void
) async throws {
  let directory = try TemporaryDirectory()
  defer { directory.remove() }
  let store = try await SQLiteHubStore.open(
    at: directory.path("hub.sqlite"), sealing: TestSealing(), options: options)
  do {
    try await body(store)
  } catch {
    try await store.close()
    throw error
  }
  try await store.close()
}

/// The engine that keeps the hub of a test.
package enum TestedEngine: Sendable {
  case file
  /// A database of its own, of the server that all tests of the process share.
  case postgres

  /// Those that this machine has.
  package static var installed: [TestedEngine] {
    PostgresStores.areInstalled ? [.file, .postgres] : [.file]
  }
}

/// A new store that goes when nobody uses it any more; one in a file is on a disk that syncs
/// nothing.
///
/// - Parameters:
///   - hook: Stands in front of its calls.
///   - stretch: How many installations a page of a filtered list looks at.
///   - limits: How much work may wait for it.
///   - isGrouping: Whether devices that wait share a transaction.
package func temporaryStore(
  _ hook: StoreHook = StoreHook(), on engine: TestedEngine = .file, stretch: Int? = nil,
  limits: JobLimits = JobLimits(), isGrouping: Bool = true
) async throws -> any HubStore {
  if engine == .postgres {
    var options = PostgresStores.options
    if let stretch { options.stretch = stretch }
    options.limits = limits
    if !isGrouping { options.batch.jobs = 1 }
    let store = try await PostgresStores.open(PostgresStores.makeDatabase(), options: options)
    hook.atEnd { Task { try? await store.close() } }
    return store.intercepted(by: hook)
  }
  let directory = try TemporaryDirectory()
  directory.removeAtExit()
  hook.atEnd { directory.remove() }
  var options = SQLiteHubStore.Options()
  options.readers = 1
  options.fileSystem = UnsyncedDisk.name
  if let stretch { options.stretch = stretch }
  options.limits = limits
  if !isGrouping { options.group.jobs = 1 }
  return try await SQLiteHubStore.open(
    at: directory.path("hub.sqlite"), sealing: TestSealing(), options: options
  ).intercepted(by: hook)
}

extension HubStore {
  /// The same open store, with a hook of its own in front of a process's calls.
  package func seen(by process: StoreHook) -> any HubStore {
    switch self {
    case let store as SQLiteHubStore: store.intercepted(by: process)
    case let store as PostgresHubStore: store.intercepted(by: process)
    default: fatalError("not a store with hooks")
    }
  }
}

extension RegistrationStore {
  /// The registrations of an installation in the order of their numbers.
  package func registrations(
    of installation: String, hub: Hub.ID
  ) async throws -> [RegistrationDraft] {
    try await registrations(
      .tag(.installation(installation)), hub: hub, asOf: .distantPast, after: 0, limit: 1_000
    ).registrations.map(\.draft)
  }
}
