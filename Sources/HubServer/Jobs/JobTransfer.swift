import Foundation
import HubCore
import NotificationHubs

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Brings a job's files to and from the places it names: over HTTP as Azure Blob Storage has it, or
/// within the directory for jobs.
struct JobTransfer: Sendable {
  let configuration: JobConfiguration
  let clock: HubClock
  /// Files up to this size go in one request, larger ones in blocks of it; in bytes.
  static let blockSize = 4 << 20

  /// Copies an input to a working file.
  /// - Returns: Its size in bytes.
  func fetch(_ place: JobPlace, to path: String) async throws -> Int64 {
    switch place {
    case .file(let source):
      let size = try copy(source, to: path)
      return size
    case .remote(let url):
      return try await trying {
        guard FileManager.default.createFile(atPath: path, contents: nil),
          let file = FileHandle(forWritingAtPath: path)
        else { throw JobFault("the working file of the job cannot be made") }
        var request = URLRequest(url: url)
        request.httpMethod = "GET"
        let reply = try await BlobCall.perform(
          request, into: file, limit: configuration.maximumInput)
        guard reply.status == 200 else { throw Self.refusal(reply.status, of: url, to: "read") }
        return reply.size
      }
    }
  }

  /// Copies a working file to its place, replacing what is there.
  func publish(_ path: String, to place: JobPlace) async throws {
    switch place {
    case .file(let target):
      let folder = URL(fileURLWithPath: target).deletingLastPathComponent()
      do {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      } catch {
        throw JobFault("the folder for the results cannot be made in the directory for jobs")
      }
      let partial = target + ".part"
      _ = try copy(path, to: partial)
      guard rename(partial, target) == 0 else {
        throw JobFault("the results cannot be written to the directory for jobs")
      }
    case .remote(let url):
      guard let file = FileHandle(forReadingAtPath: path) else {
        throw JobFault("the working file of the job is gone")
      }
      let first = try file.read(upToCount: Self.blockSize + 1) ?? Data()
      if first.count <= Self.blockSize {
        try await put(first, to: url, headers: ["x-ms-blob-type": "BlockBlob"])
      } else {
        try await putBlocks(path, to: url)
      }
    }
  }

  private func putBlocks(_ path: String, to url: URL) async throws {
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw JobFault("the working file of the job is gone")
    }
    var ids: [String] = []
    while let block = try file.read(upToCount: Self.blockSize), !block.isEmpty {
      let number = String(ids.count)
      let id = Data((String(repeating: "0", count: 8 - number.count) + number).utf8)
        .base64EncodedString()
      ids.append(id)
      try await put(block, to: Self.adding("comp=block&blockid=\(id.percentEncoded)", to: url))
    }
    let list = ids.map { "<Latest>\($0)</Latest>" }.joined()
    let document = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>\(list)</BlockList>"
    try await put(
      Data(document.utf8), to: Self.adding("comp=blocklist", to: url),
      headers: ["x-ms-blob-content-type": "text/plain; charset=utf-8"])
  }

  private func put(_ body: Data, to url: URL, headers: [String: String] = [:]) async throws {
    try await trying {
      var request = URLRequest(url: url)
      request.httpMethod = "PUT"
      request.httpBody = body
      request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
      request.setValue(String(body.count), forHTTPHeaderField: "Content-Length")
      for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
      let reply = try await BlobCall.perform(request)
      guard (200...299).contains(reply.status) else {
        throw Self.refusal(reply.status, of: url, to: "write")
      }
    }
  }

  private static func adding(_ query: String, to url: URL) throws -> URL {
    guard var components = URLComponents(url: url, resolvingAgainstBaseURL: false) else {
      throw JobFault("a URI of the job cannot be read")
    }
    let present = components.percentEncodedQuery.map { $0 + "&" } ?? ""
    components.percentEncodedQuery = present + query
    guard let url = components.url else { throw JobFault("a URI of the job cannot be read") }
    return url
  }

  /// Names the host only: the rest may hold a signature.
  private static func refusal(_ status: Int, of url: URL, to verb: String) -> JobFault {
    let host = url.host ?? ""
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

  /// Copies by pieces.
  private func copy(_ source: String, to target: String) throws -> Int64 {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: source, isDirectory: &isFolder),
      !isFolder.boolValue, let reading = FileHandle(forReadingAtPath: source)
    else { throw JobFault("there is no such file in the directory for jobs") }
    guard FileManager.default.createFile(atPath: target, contents: nil),
      let writing = FileHandle(forWritingAtPath: target)
    else { throw JobFault("a file of the job cannot be made") }
    var size: Int64 = 0
    while let piece = try reading.read(upToCount: 1 << 20), !piece.isEmpty {
      size += Int64(piece.count)
      guard size <= configuration.maximumInput else {
        throw JobFault("the file has more than \(configuration.maximumInput) bytes")
      }
      try writing.write(contentsOf: piece)
    }
    try writing.synchronize()
    return size
  }
}
