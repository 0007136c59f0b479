import Foundation
import HTTPClient
import NotificationHubs

struct HealthCommand: ResultCommand {
  static let about = CommandHelp(
    "health", "check whether a server is ready",
    discussion: """
      Exits with 0 if /health/ready is 200, with 1 if it is 503, and with 69 if there is no answer
      within five seconds: for the health checks of containers, which have no curl. The server is
      that of the data directory, or of --url. docs/reference/metrics.md explains the output.
      """,
    examples: [
      "belfry health --data /var/lib/belfry", "belfry health --url https://push.example.com --json",
    ])

  @Option("--config", "FILE", "the configuration file (default: belfry.json here, if it is there)")
  var file: String?
  private let settings = SettingOptions([.data])
  @Option("--url", "URL", "the server's address, in place of that of a data directory")
  var url: String?
  @Option("--ca", "FILE", "a PEM file of authorities that may have signed its certificate")
  var ca: String?
  @Flag("--json", "print what the server says: one JSON object") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    let anchors = try ca.map { try ClientTransport.anchors(in: $0) } ?? []
    let address = try address(context)
    let health = try await ServerHealth.ask(address, anchorsPEM: anchors)
    let report = health.report
    let body = String(decoding: health.body, as: UTF8.self).split(whereSeparator: \.isNewline)
    return CommandResult(
      written: Array(body.map { String($0).harmless }.joined(separator: "\n").utf8),
      ["\(report.status) at \(address)"]
        + report.reasons.map { "\($0.code): \($0.text)" }
        + report.warnings.map { "warning \($0.code): \($0.text)" },
      failure: health.status == 200 ? nil : CommandFailure("the server is \(report.status)"))
  }

  private func address(_ context: CommandContext) throws -> String {
    if let url { return url.hasSuffix("/") ? String(url.dropLast()) : url }
    let configuration = try Configuration(
      file: file, environment: context.environment, flags: settings.given)
    let data = DataDirectory(path: configuration.text(.data) ?? "belfry-data")
    try data.becomeOwner()
    if let address = data.address { return address }
    try data.checkUser(onlyReads: true)
    throw CommandFailure(
      "no server has published its address in \(data.path): name its directory with --data DIR, or "
        + "its address with --url URL", exitCode: .unreachable)
  }
}

/// The health of a server as reported at `/health/ready`.
struct ServerHealth: Sendable {
  struct Report: Decodable, Sendable {
    struct Finding: Decodable, Sendable {
      let code: String
      let text: String
      fileprivate var harmless: Finding { Finding(code: code.harmless, text: text.harmless) }
    }
    let status: String
    let reasons: [Finding]
    let warnings: [Finding]

    /// The report with text safe for a terminal, since the peer may not be a Belfry server.
    fileprivate var harmless: Report {
      Report(
        status: status.harmless, reasons: reasons.map(\.harmless),
        warnings: warnings.map(\.harmless))
    }
  }

  let status: Int
  let report: Report
  let body: Data

  /// - Parameter anchorsPEM: The authorities that may have signed the server's certificate.
  /// - Throws: ``UsageError`` for an invalid address; ``CommandFailure`` if no Belfry server
  ///   replies.
  static func ask(_ address: String, anchorsPEM: [UInt8]) async throws -> ServerHealth {
    guard let url = URL(string: address + "/health/ready"), url.host != nil else {
      throw UsageError("--url must be an address such as http://127.0.0.1:8080, not '\(address)'")
    }
    let transport = ClientTransport(
      anchorsPEM: anchorsPEM, largestBody: 1 << 20, totalTimeout: .seconds(5))
    let reply: TransportReply
    do {
      reply = try await transport.send(TransportRequest(method: "GET", url: url))
    } catch {
      throw CommandFailure("\(address) does not answer: \(error)", exitCode: .unreachable)
    }
    guard let report = try? JSONDecoder().decode(Report.self, from: reply.body) else {
      throw CommandFailure("\(address) answered \(reply.status), but it is not a Belfry server")
    }
    return ServerHealth(status: reply.status, report: report.harmless, body: reply.body)
  }
}
