import Cryptography
import Foundation
import HubCore
import HubStorage
import NotificationHubs

/// Turns an error of a key file into a failure.
private func usingKeys<Value>(_ work: () async throws -> Value) async throws -> Value {
  do { return try await work() } catch let error as CryptographyError {
    throw CommandFailure(error.message, exitCode: .usage)
  }
}

struct KeyListCommand: ResultCommand {
  static let about = CommandHelp(
    "key list", "list the master keys by their ids, and how much is sealed under each",
    discussion: """
      The master key seals the keys of policies, the credentials of push services and the addresses
      of jobs. An id identifies a key and reveals nothing about it. No command shows a key.
      """,
    examples: ["belfry key list --data /var/lib/belfry"])

  private let management = ManagementOptions(namesHub: false, settings: [.database])

  private struct Key: Encodable {
    let id: String
    let isInForce: Bool
    let values: Int
  }

  func result(in context: CommandContext) async throws -> CommandResult {
    let (keys, unopened) = try await management.withStore(in: context) { runtime in
      let store = runtime.service.store
      let (inForce, values) = (try await store.sealingKey(), try await store.sealedValues())
      return (
        runtime.keys.ids.map {
          Key(id: $0, isInForce: $0 == inForce, values: values.counts[$0] ?? 0)
        }, values.unopened
      )
    }
    var notes: [String] = []
    if keys.count > 1 {
      notes.append("a rotation is under way: `belfry key rotate --finish` ends it")
    }
    if !unopened.isEmpty { notes.append("no key opens " + unopened.joined(separator: ", ")) }
    return CommandResult(
      keys,
      keys.map { key in
        key.id + "  " + (key.isInForce ? "in force" : "opens").padded(to: 9)
          + " \(key.values) values"
      }, notes: notes)
  }
}

struct KeyRotateCommand: ResultCommand {
  static let about = CommandHelp(
    "key rotate", "replace the master key while servers run",
    discussion: """
      Adds a new key to master.key, waits until the server has read it, seals everything again,
      checks that nothing is left under the old key, and moves the old key to a separate file,
      master.key.ID: older backups open only with it. If it is killed at any point, run it again to
      resume.

      With several nodes on PostgreSQL it stops until each has the new key: copy master.key to the
      others, which read it within seconds, and run it again. Finally run it with --finish in the
      data directory of each other node, to remove the old key there.

      If the key comes from BELFRY_MASTER_KEY, set that to NEW,OLD for servers and command first.
      """,
    examples: [
      "sudo -u belfry belfry key rotate --data /var/lib/belfry",
      "belfry key rotate --finish --data /var/lib/belfry",
    ])

  private let management = ManagementOptions(namesHub: false, settings: [.database])
  @Flag("--finish", "only end a rotation that was begun") var finish

  func result(in context: CommandContext) async throws -> CommandResult {
    let key = try await management.withStore(
      .changesNamespace, as: (.rotateMasterKey, nil), in: context
    ) {
      runtime in
      let folder = URL(fileURLWithPath: runtime.data.path).lastPathComponent
      guard runtime.shared == nil || runtime.keys.file == nil || !Workspace.isOwn(folder) else {
        throw CommandFailure(
          "`belfry up` deletes the new key when it ends, and the database could not be opened: start it "
            + "with --data DIR, which keeps the key", exitCode: .usage)
      }
      // If no node is left, this removes the records of dead ones.
      _ = try await runtime.shared?.livingNodes()
      return try await usingKeys {
        try await KeyRotation(
          keys: runtime.keys, store: runtime.service.store, data: runtime.data,
          isShared: runtime.shared != nil, report: { context.note("\($0)") }
        ).run(finishing: finish)
      }
    }
    return CommandResult(
      ["key": key], ["the master key is \(key)"],
      notes: [
        "backups made before need the old key: keep it where their key is, or delete it with them"
      ])
  }
}
