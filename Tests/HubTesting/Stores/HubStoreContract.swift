import Foundation
package import HubCore
import NotificationHubs

/// What every ``HubStore`` promises, as a table of sentences with their proofs.
///
/// An engine's tests run all of ``clauses`` as arguments of one test, each on a store of its own.
package enum HubStoreContract {
  /// One promise.
  package struct Clause: Sendable, CustomStringConvertible {
    /// The promise as a sentence.
    package let description: String
    /// Throws when a new, empty store does not keep it.
    package let check: @Sendable (any HubStore) async throws -> Void

    init(_ description: String, check: @escaping @Sendable (any HubStore) async throws -> Void) {
      self.description = description
      self.check = check
    }
  }

  /// A promise that was not kept.
  package struct Violation: Error, CustomStringConvertible {
    package let description: String
  }

  package static let clauses: [Clause] =
    directoryClauses + deviceClauses + audienceClauses + notificationClauses + retryClauses
    + registrationClauses + registrationListClauses + registrationRandomClauses + sendClauses
    + notificationListClauses + managementClauses + outcomeClauses + extensionClauses
    + clearingClauses + removalClauses + statisticsClauses

  /// The moment at which the contract's scenes play.
  static let now = Date(timeIntervalSince1970: 1_893_456_000)

  static func expect(
    _ isKept: Bool, _ what: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
  ) throws {
    if !isKept { throw Violation(description: "\(what()) (\(file):\(line))") }
  }

  static func expectEqual<Value: Equatable>(
    _ found: Value, _ wanted: Value, _ what: String = "values", file: StaticString = #fileID,
    line: UInt = #line
  ) throws {
    try expect(
      found == wanted, "\(what): found \(found), wanted \(wanted)", file: file, line: line)
  }

  /// Expects a refusal.
  static func expectRefusal(
    _ wanted: StoreError, file: StaticString = #fileID, line: UInt = #line,
    _ body: () async throws -> Void
  ) async throws {
    do {
      try await body()
    } catch let error as StoreError where error == wanted {
      return
    } catch {
      throw Violation(description: "\(error) instead of \(wanted) (\(file):\(line))")
    }
    throw Violation(description: "no refusal where \(wanted) was due (\(file):\(line))")
  }

  static func makeHub(_ store: any HubStore, _ name: String = "hub1") async throws -> Hub.ID {
    try await store.createHub(named: name, registrationTTL: nil, policies: [], at: now).id
  }
}
