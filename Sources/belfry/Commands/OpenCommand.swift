import Foundation
import HubServer
import NotificationHubs

struct OpenCommand: ResultCommand {
  static let about = CommandHelp(
    "open", "open the portal in a browser",
    discussion: """
      Of the hub that other commands use; `belfry help all` explains how it is selected. The browser
      is that of the variable BROWSER, or the system's. Only the portal of `belfry up` needs no
      sign-in.
      """,
    examples: ["belfry open", "belfry open --data /var/lib/belfry --print"])

  @Option("--data", "DIR", "the data directory of a server that runs (or BELFRY_DATA)")
  var data: String?
  @Option("--config", "FILE", "a configuration file, which names the data directory")
  var config: String?
  @Option("--connection", "STRING", "a connection string (or BELFRY_CONNECTION_STRING)")
  var connection: String?
  @Flag("--print", "only print the address") var prints
  @Flag("--json", "print one JSON object, and open nothing") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    let target = try HubLocation(connection: connection, data: data, config: config)
      .target(namesHub: false, in: context)
    let portal = try target.portal(context.environment)
    guard !prints, !json else { return CommandResult(["portal": portal], [portal]) }
    let page = try PageOpener(environment: context.environment)
    try page.open(portal)
    return CommandResult(["portal": portal], ["opened \(portal.prefix { $0 != "#" })"])
  }
}

extension HubTarget {
  /// The address of the portal; that of a `belfry up` with its key.
  /// - Throws: ``CommandFailure`` if no server runs on the data directory.
  func portal(_ environment: [String: String]) throws -> String {
    try RunningUp.of(self, environment)?.portal ?? address() + Portal.path
  }

  /// The address of the server.
  /// - Throws: ``CommandFailure`` if none runs on the data directory.
  func address() throws -> String {
    switch location {
    case .connection(let connection): return connection.endpoint.url
    case .directory(let directory): return try directory.requiredEndpoint().url
    }
  }
}

/// Opens pages in the user's browser.
private struct PageOpener {
  /// The program and its arguments, of which `%s` is the address.
  private let words: [String]
  private let folder: URL

  /// - Throws: ``CommandFailure`` if there is no program to open them with.
  init(environment: [String: String]) throws {
    #if os(macOS)
      let known = ["open"]
    #else
      let known = ["xdg-open", "sensible-browser"]
    #endif
    let folders = (environment["PATH"] ?? "").split(separator: ":").map(String.init)
    // As other programs read it: alternatives between colons, each a command.
    let named = (environment["BROWSER"] ?? "").split(separator: ":").map(String.init)
    for command in named + known {
      var words = command.split(separator: " ").map(String.init)
      guard let name = words.first else { continue }
      let paths = name.contains("/") ? [name] : folders.map { $0 + "/" + name }
      guard let path = paths.first(where: FileManager.default.isExecutableFile(atPath:)) else {
        continue
      }
      words[0] = path
      self.words = words.contains("%s") ? words : words + ["%s"]
      folder = RunningUp.folder(environment)
      return
    }
    throw CommandFailure(
      "no browser is known here; set BROWSER to one, or open what `belfry open --print` prints")
  }

  /// An address with a key goes over a file: other users of this machine see a process's arguments.
  func open(_ address: String) throws {
    let shown = address.contains("#") ? try page(to: address) : address
    let process = Process()
    process.executableURL = URL(fileURLWithPath: words[0])
    process.arguments = words.dropFirst().map { $0 == "%s" ? shown : $0 }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    do { try process.run() } catch {
      throw CommandFailure("\(words[0]) cannot be run: \(error.localizedDescription)")
    }
  }

  /// Writes a page that leads to an address and that only this user can read.
  private func page(to address: String) throws -> String {
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let file = RunningUp.portalPage(in: folder).path
    // No character of a URL of ours has a meaning in HTML but the ampersand, which it has not.
    let html =
      "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0; url=\(address)\">"
    try OutputFile.write(html, to: file)
    return "file://" + file
  }
}
