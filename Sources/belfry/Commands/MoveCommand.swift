import Foundation
import HubStorage

struct MoveCommand: ResultCommand {
  static let about = CommandHelp(
    "move", "move all hubs from a file to PostgreSQL, or back",
    discussion: """
      Moves everything: hubs, keys, credentials, devices with their ids and etags, notifications
      with their remaining work, schedules, outcomes, statistics, activity and sessions. Stop the
      servers of both first. The target must be new: a directory without a database, or a database
      made with `createdb`; a directory in the place of a PostgreSQL source is that of one of its
      nodes.

      If a move is interrupted, run the same command again to resume; no server starts on its target
      before it is done. At the end both sides are compared by counts and hashes of all their rows.
      The source stays as it was, with a note that keeps servers from it: two hubs would push twice.

      Secrets stay sealed under the same master key, which must be present on both sides.
      """,
    examples: [
      "belfry move --from belfry-data --to postgresql://belfry@db1/belfry --dry-run",
      "belfry move --from belfry-data --to postgresql://belfry@db1/belfry",
      "belfry move --from /var/lib/belfry-node --to belfry-data",
    ])

  @Option("--from", "DIR|URL", "the data directory that is moved, or a PostgreSQL database")
  var source: String?
  @Option("--to", "DIR|URL", "where it is moved to: the other of the two") var target: String?
  @Flag("--dry-run", "say what would be moved, and change nothing") var isDryRun
  @Flag("--json", "print one JSON value for scripts") var json
  private let settings = SettingOptions([.databaseSlots])

  private struct Result: Encodable {
    struct Table: Encodable {
      let table: String
      let rows: Int64
      /// The hash of the rows' content, which is the same on both sides.
      let hash: String?
    }
    let from: String
    let to: String
    let isDryRun: Bool
    let tables: [Table]
  }

  func result(in context: CommandContext) async throws -> CommandResult {
    guard let source, let target else { throw UsageError("give --from and --to") }
    let configuration = try Configuration(
      file: nil, environment: context.environment, flags: settings.given)
    let ends = try MoveEnds(
      from: source, to: target, masterKey: configuration.text(.masterKey),
      slots: try configuration.databaseSlots())
    do {
      let tables =
        isDryRun ? try await preview(ends, in: context) : try await move(ends, in: context)
      let rows = tables.map { table in
        table.table.padded(to: 22) + String(table.rows).padded(to: 12) + (table.hash ?? "")
      }
      return CommandResult(
        Result(from: ends.source, to: ends.target, isDryRun: isDryRun, tables: tables),
        rows + [isDryRun ? "nothing was changed" : ends.advice])
    } catch let refusal as MoveRefusal {
      let done = refusal.isOfUsedTarget ? try await ends.done() : nil
      throw CommandFailure(done ?? "\(refusal)")
    }
  }

  private func preview(
    _ ends: MoveEnds, in context: CommandContext
  ) async throws -> [Result.Table] {
    let counts = try await ends.preview()
    return counts.map { Result.Table(table: $0.0, rows: $0.1, hash: nil) }
  }

  private func move(_ ends: MoveEnds, in context: CommandContext) async throws -> [Result.Table] {
    let lines = MoveProgressLines(context)
    defer { lines.clear() }
    let digests = try await ends.withMove { move in try await move.run { lines.show($0) } }
    return digests.map {
      Result.Table(table: $0.table, rows: $0.rows, hash: String($0.hash, radix: 16))
    }
  }
}
