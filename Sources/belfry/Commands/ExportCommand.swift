import Foundation
import HubServer
import NotificationHubs

/// `belfry export`
struct ExportCommand: Subcommand {
  static let help = CommandHelp(
    "export", "write all devices of a hub to a file, from Azure or from Belfry",
    arguments: [("FILE", "the file to write; - for standard output")],
    options: ClientOptions.options + [
      .flag(
        "--registrations-only",
        "write those that installations have made as registrations, as export jobs do")
    ],
    discussion: """
      The file has one line for each device: an installation as JSON, or a registration that an app
      wrote itself as the XML that import and export jobs use. `belfry import` reads it.

      It takes a key with the right Manage. Devices that register while the export runs may be
      missing; run it again, or import twice.

      \(ClientOptions.note)
      """,
    examples: [
      "belfry export devices.txt --connection \"$AZURE\" --hub news",
      "belfry import devices.txt --data /var/lib/belfry --hub news",
    ])

  let file: String
  let onlyRegistrations: Bool
  let client: ClientOptions

  init(_ words: Words) throws {
    file = try words.argument(0)
    onlyRegistrations = words.flag("--registrations-only")
    client = ClientOptions(words: words)
  }

  private struct Counts: Encodable {
    var file: String
    var registrations = 0
    var installations = 0
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Manage"), in: context)
    let hub = access.client
    let output = try OutputFile(file)
    var bar = ProgressBar()
    var counts = Counts(file: file)
    var pending: [String] = []
    // Only hashes: what has been seen must not grow with the length of the ids.
    var seen: Set<Int> = []
    do {
      try await access.calling {
        for try await registration in hub.registrations(pageSize: 100) {
          if !onlyRegistrations, let id = registration.ownerInstallationID {
            if seen.insert(id.hashValue).inserted { pending.append(id) }
          } else {
            try output.write(registration.descriptionXML(form: .read).singleLine)
            counts.registrations += 1
          }
          if pending.count >= 64 {
            counts.installations += try await write(pending, of: hub, to: output)
            pending = []
          }
          bar.show(
            nil, "\(counts.installations) installations, \(counts.registrations) registrations")
        }
        counts.installations += try await write(pending, of: hub, to: output)
      }
      try output.finish()
    } catch {
      bar.clear()
      output.discard()
      throw error
    }
    bar.clear()
    // Standard output may be the file itself.
    if client.json, file != "-" { return try context.printJSON(counts) }
    let text =
      "exported \(counts.installations) installations and \(counts.registrations) registrations"
    if file == "-" { context.note(text) } else { context.print("\(text) to \(file)") }
  }

  /// Reads installations, several at a time, and writes those that are still there.
  private func write(
    _ ids: [String], of hub: NotificationHubClient, to output: OutputFile
  ) async throws -> Int {
    try await withThrowingTaskGroup(of: Installation?.self) { group in
      for id in ids {
        group.addTask {
          do {
            return try await hub.installation(id)
          } catch let error as NotificationHubError where error.kind == .notFound {
            return nil
          }
        }
      }
      var count = 0
      for try await installation in group {
        guard let installation else { continue }
        try output.write(String(decoding: installation.jsonData, as: UTF8.self))
        count += 1
      }
      return count
    }
  }
}

extension Registration {
  /// The installation that made it; `nil` for one that an app wrote itself.
  var ownerInstallationID: String? {
    let mark = "$InstallationId:{"
    for tag in tags where tag.rawValue.lowercased().hasPrefix(mark.lowercased()) {
      return String(tag.rawValue.dropFirst(mark.count).dropLast())
    }
    return nil
  }
}

extension FileHandle {
  /// A new file in place of what has that name, for its owner alone: it is to hold handles of devices.
  /// - Throws: ``CommandFailure``.
  static func privateFile(_ path: String) throws(CommandFailure) -> FileHandle {
    _ = unlink(path)
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      throw CommandFailure(
        "\(path) cannot be written: \(String(cString: strerror(errno)))", exitCode: .usage)
    }
    return FileHandle(fileDescriptor: file, closeOnDealloc: true)
  }
}

/// A file that appears under its name when it is whole, or standard output.
private final class OutputFile {
  private let path: String?
  private let handle: FileHandle

  init(_ path: String) throws {
    guard path != "-" else {
      self.path = nil
      handle = .standardOutput
      return
    }
    let partial = path + ".part"
    self.path = path
    handle = try .privateFile(partial)
  }

  func write(_ line: String) throws {
    do {
      try handle.write(contentsOf: Data((line + "\n").utf8))
    } catch {
      throw CommandFailure("cannot write: \(Configuration.reason(error))")
    }
  }

  func finish() throws {
    guard let path else { return }
    try handle.synchronize()
    guard rename(path + ".part", path) == 0 else {
      throw CommandFailure("\(path) cannot be written; the lines are in \(path).part")
    }
  }

  func discard() {
    if let path { try? FileManager.default.removeItem(atPath: path + ".part") }
  }
}
