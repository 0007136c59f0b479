import Cryptography
import Foundation
import HubServer
import NotificationHubs

struct ExportCommand: Subcommand {
  static let about = CommandHelp(
    "export", "write all devices of a hub to a file, from Azure or from Belfry",
    discussion: """
      The file has one line for each device: an installation as JSON, or a registration that an app
      wrote itself as the XML that import and export jobs use. `belfry import` reads it.

      It needs a key with the right Manage. Devices that register while the export runs may be
      missing; run it again, or import twice.
      """,
    examples: [
      "belfry export devices.txt --connection \"$AZURE\" --hub news",
      "belfry import devices.txt --data /var/lib/belfry --hub news",
    ])

  @Argument("FILE", "the file to write; - for standard output") var file: String
  let client = ClientOptions()
  @Flag(
    "--registrations-only",
    "write those that installations have made as registrations, as export jobs do")
  var onlyRegistrations

  private struct Counts: Encodable {
    var file: String
    var registrations = 0
    var installations = 0
  }

  func run(in context: CommandContext) async throws {
    let counts = try await client.withHub(in: context) { try await export(from: $0.client) }
    let text =
      "exported \(counts.installations) installations and \(counts.registrations) registrations"
    // Standard output may be the exported file itself.
    if file == "-" { return context.note(text) }
    try CommandResult(counts, ["\(text) to \(file)"]).print(asJSON: client.json, in: context)
  }

  private func export(from hub: NotificationHubClient) async throws -> Counts {
    let output = try OutputFile(file)
    var bar = ProgressBar()
    var counts = Counts(file: file)
    var pending: [String] = []
    // Only hashes, so that memory does not grow with the length of the ids.
    var seen: Set<Int> = []
    do {
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
      try output.finish()
    } catch {
      bar.clear()
      output.discard()
      throw error
    }
    bar.clear()
    return counts
  }

  /// Reads installations concurrently, and writes those that still exist.
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
  /// The id of the installation that owns the registration; `nil` for one that an app created
  /// directly.
  var ownerInstallationID: String? {
    let mark = "$InstallationId:{"
    for tag in tags where tag.rawValue.lowercased().hasPrefix(mark.lowercased()) {
      return String(tag.rawValue.dropFirst(mark.count).dropLast())
    }
    return nil
  }
}

extension FileHandle {
  /// See ``newPrivate(_:)``.
  /// - Throws: ``CommandFailure``.
  static func privateFile(_ path: String) throws(CommandFailure) -> FileHandle {
    if let file = newPrivate(path) { return file }
    throw CommandFailure(
      "\(path) cannot be written: \(String(cString: strerror(errno)))", exitCode: .usage)
  }
}

/// A file that appears under its name only once it is complete, or standard output.
final class OutputFile {
  private let path: String?
  private let handle: FileHandle
  /// See ``syncNames(in:)``; tests replace it.
  var syncNames: (String) throws -> Void = OutputFile.syncNames(in:)

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

  /// Creates a file with a text.
  static func write(_ text: String, to path: String) throws {
    let file = try OutputFile(path)
    try file.write(Data(text.utf8))
    try file.finish()
  }

  func write(_ line: String) throws { try write(Data((line + "\n").utf8)) }

  func write(_ data: Data) throws {
    do {
      try handle.write(contentsOf: data)
    } catch {
      throw CommandFailure(
        "\(path ?? "standard output") cannot be written: \(Configuration.reason(error))")
    }
  }

  func finish() throws {
    guard let path else { return }
    try handle.synchronize()
    guard rename(path + ".part", path) == 0 else {
      throw CommandFailure("\(path) cannot be written; what it would hold is in \(path).part")
    }
    try syncNames(URL(fileURLWithPath: path).deletingLastPathComponent().path)
  }

  /// Syncs the names of files in a directory, so that they survive a power failure; syncing the
  /// files alone does not ensure that.
  /// - Throws: ``CommandFailure``.
  static func syncNames(in folder: String) throws(CommandFailure) {
    let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { if directory >= 0 { close(directory) } }
    // A directory that is writable but not readable cannot be synced; some file systems support no
    // sync.
    guard directory >= 0 ? fsync(directory) != 0 && errno != EINVAL : errno != EACCES else {
      return
    }
    throw CommandFailure(
      "what was written in \(folder) may be lost by a power cut: \(String(cString: strerror(errno)))"
    )
  }

  func discard() {
    if let path { try? FileManager.default.removeItem(atPath: path + ".part") }
  }
}
