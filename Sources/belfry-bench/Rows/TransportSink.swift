import Cryptography
import Foundation
import HTTP2

/// The server that the transport row pushes to: says 200 to everything. Runs in a child process
/// until its standard input ends, then prints the CPU seconds it has used.
enum TransportSink {
  /// The hidden first word that starts it.
  static let word = "transport-sink"

  struct Greeting: Codable {
    var port: UInt16
    var authorityPEM: String
  }

  static func run() async throws {
    let authority = try CertificateAuthority(commonName: "belfry-bench")
    let identity = try authority.issueForLocalhost()
    let configuration = HTTP2ServerConfiguration(
      host: "127.0.0.1", port: 0, certificatePEM: Array(identity.certificatePEM.utf8),
      keyPEM: Array(try identity.privateKeyPEM().utf8))
    let server = try HTTP2Server(configuration, handler: AcceptAll())
    let greeting = Greeting(port: server.port, authorityPEM: authority.certificate.pem)
    let output = FileHandle.standardOutput
    output.write(try JSONEncoder().encode(greeting) + Data("\n".utf8))
    while !FileHandle.standardInput.availableData.isEmpty {}
    output.write(Data("\(ProcessUsage.current().cpuSeconds)\n".utf8))
    await server.stop()
  }

  private struct AcceptAll: HTTP2ServerHandler {
    private let answer = HTTP2ServerResponse(
      status: 200,
      fields: HTTP2FieldList([("apns-id", "EC1BF194-B3B2-424A-89E9-5A918A6E6B5F")]))

    func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
      connection.respond(answer, to: request.stream)
    }
  }
}

/// The sink as its parent sees it.
struct TransportSinkProcess {
  let port: UInt16
  let authorityPEM: [UInt8]
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  init() throws {
    guard let executable = Bundle.main.executableURL else {
      throw BenchmarkError("cannot find this program's own file to start the sink")
    }
    process.executableURL = executable
    process.arguments = [TransportSink.word]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    let line = Self.line(from: output.fileHandleForReading)
    guard let greeting = try? JSONDecoder().decode(TransportSink.Greeting.self, from: line) else {
      throw BenchmarkError("the sink did not start")
    }
    port = greeting.port
    authorityPEM = Array(greeting.authorityPEM.utf8)
  }

  /// Ends the sink; returns the CPU seconds it used.
  func stop() throws -> Double {
    try input.fileHandleForWriting.close()
    let line = Self.line(from: output.fileHandleForReading)
    process.waitUntilExit()
    let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .newlines)
    return Double(text) ?? 0
  }

  private static func line(from handle: FileHandle) -> Data {
    var line = Data()
    while line.last != UInt8(ascii: "\n") {
      let more = handle.availableData
      if more.isEmpty { break }
      line += more
    }
    return line
  }
}
