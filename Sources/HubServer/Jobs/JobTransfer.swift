import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Synchronization
import Wire

/// Transfers a job's files: over HTTP in the way of Azure Blob Storage, or within the directory for
/// jobs.
struct JobTransfer: Sendable {
  let configuration: JobConfiguration
  let clock: HubClock
  /// The session for hosts that the operator named exactly.
  private let anywhere: HTTPSession
  /// The session for all other hosts: the resolved address is checked for each connection.
  private let publicOnly: HTTPSession
  /// The maximum size in bytes of a file sent in one request; larger ones are sent in blocks of
  /// this size.
  static let blockSize = 4 << 20

  init(configuration: JobConfiguration, clock: HubClock) {
    self.configuration = configuration
    self.clock = clock
    var session = HTTPSessionConfiguration()
    session.allowsPlainHTTP = true
    session.extraAnchorsPEM = configuration.extraAnchorsPEM
    session.connectTimeout = .seconds(30)
    session.totalTimeout = .seconds(24 * 3600)
    session.silenceTimeout = .seconds(60)
    anywhere = HTTPSession(session)
    session.allowsPlainHTTP = false
    session.allowsAddress = { $0.isPublic }
    publicOnly = HTTPSession(session)
  }

  /// Copies an input to a working file.
  /// - Returns: The size in bytes.
  func fetch(_ place: JobLocation, to path: String) async throws -> Int64 {
    switch place {
    case .file(let source):
      return try await JobFiles.copy(source, to: path, limit: configuration.maximumInput)
    case .remote(let address):
      return try await trying {
        let input = Incoming(
          file: try JobFiles.make(path), limit: configuration.maximumInput)
        var call = HTTPCall(method: "GET", url: address.url)
        call.receive = { input.take($0) }
        let reply = try await input.result { try await perform(call, at: address) }
        guard reply.status == 200 else { throw Self.refusal(reply.status, of: address, to: "read") }
        return input.size
      }
    }
  }

  /// Copies a working file to its destination, replacing any existing file.
  func publish(_ path: String, to place: JobLocation) async throws {
    switch place {
    case .file(let target):
      let folder = URL(fileURLWithPath: target).deletingLastPathComponent()
      do {
        try await JobFiles.blocking { _ in try JobFiles.makeFolder(folder) }
      } catch {
        throw JobFault("the folder for the results cannot be made in the directory for jobs")
      }
      let partial = target + ".part"
      _ = try await JobFiles.copy(path, to: partial, limit: .max)
      guard rename(partial, target) == 0 else {
        throw JobFault("the results cannot be written to the directory for jobs")
      }
    case .remote(let address):
      let first = try await JobFiles.read(path, at: 0, count: Self.blockSize + 1)
      if first.count <= Self.blockSize {
        try await put(first, to: address, headers: [("x-ms-blob-type", "BlockBlob")])
      } else {
        try await putBlocks(path, to: address)
      }
    }
  }

  private func putBlocks(_ path: String, to address: JobAddress) async throws {
    var ids: [String] = []
    var offset: Int64 = 0
    while true {
      let block = try await JobFiles.read(path, at: offset, count: Self.blockSize)
      if block.isEmpty { break }
      offset += Int64(block.count)
      let number = String(ids.count)
      let id = Data((String(repeating: "0", count: 8 - number.count) + number).utf8)
        .base64EncodedString()
      ids.append(id)
      try await put(
        block, to: address.adding("comp=block&blockid=\(id.percentEncoded)"))
    }
    let list = ids.map { "<Latest>\($0)</Latest>" }.joined()
    let document = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>\(list)</BlockList>"
    try await put(
      Array(document.utf8), to: address.adding("comp=blocklist"),
      headers: [("x-ms-blob-content-type", "text/plain; charset=utf-8")])
  }

  private func put(
    _ body: [UInt8], to address: JobAddress, headers: [(name: String, value: String)] = []
  ) async throws {
    try await trying {
      let reply = try await perform(
        HTTPCall(
          method: "PUT", url: address.url,
          headers: [("Content-Type", "application/octet-stream")] + headers, body: body),
        at: address)
      guard (200...299).contains(reply.status) else {
        throw Self.refusal(reply.status, of: address, to: "write")
      }
    }
  }

  private func perform(_ call: HTTPCall, at address: JobAddress) async throws -> HTTPReply {
    do throws(HTTPFailure) {
      return try await (address.isPublicOnly ? publicOnly : anywhere).send(call)
    } catch {
      switch error.kind {
      case .cancelled: throw CancellationError()
      case .refusedAddress:
        throw JobFault(
          "the host '\(address.host)' leads to an address that is not public; the operator of this "
            + "hub can allow it as host:port with the setting jobHosts")
      case .badCall, .tooLarge: throw JobFault(error.description)
      default:
        throw JobFault(
          "the host '\(address.host)' cannot be reached (\(error.description))",
          isTransient: true)
      }
    }
  }

  /// The error contains only the host: the rest of the URL may contain a signature.
  private static func refusal(
    _ status: UInt16, of address: JobAddress, to verb: String
  ) -> JobFault {
    let host = address.host
    switch status {
    case 300...399:
      return JobFault("\(host) answers with a redirection (\(status)), which is not followed")
    case 401, 403: return JobFault("\(host) does not allow the job to \(verb) there (\(status))")
    case 404: return JobFault("\(host) has no such file or container (404)")
    default:
      return JobFault(
        "\(host) answers with status \(status)",
        isTransient: status == 408 || status == 429 || status >= 500)
    }
  }

  private func trying<Value>(_ work: () async throws -> Value) async throws -> Value {
    var attempt = 1
    while true {
      do {
        return try await work()
      } catch let fault as JobFault where fault.isTransient && attempt < configuration.attempts {
        try await clock.sleep(.seconds(1 << min(attempt, 5)))
        attempt += 1
      }
    }
  }
}

/// A file received piece by piece, on the session's thread.
private final class Incoming: Sendable {
  private struct State {
    let file: FileHandle
    var size: Int64 = 0
    var fault: JobFault?
  }

  private let state: Mutex<State>
  private let limit: Int64

  init(file: sending FileHandle, limit: Int64) {
    state = Mutex(State(file: file))
    self.limit = limit
  }

  var size: Int64 { state.withLock { $0.size } }

  /// - Returns: Whether more data may follow.
  func take(_ bytes: [UInt8]) -> Bool {
    state.withLock { state in
      state.size += Int64(bytes.count)
      if state.size > limit {
        state.fault = JobFault("the file has more than \(limit) bytes")
      } else {
        do { try state.file.write(contentsOf: Data(bytes)) } catch {
          state.fault = JobFault("the disk does not take the file: \(error.localizedDescription)")
        }
      }
      return state.fault == nil
    }
  }

  /// The result of the call, or the reason why receiving stopped.
  func result(_ call: () async throws -> HTTPReply) async throws -> HTTPReply {
    do {
      return try await call()
    } catch {
      throw state.withLock { $0.fault } ?? error
    }
  }
}

extension JobAddress {
  fileprivate func adding(_ query: String) -> JobAddress {
    var longer = self
    longer.url += (url.contains("?") ? "&" : "?") + query
    return longer
  }
}
