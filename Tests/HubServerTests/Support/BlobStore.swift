import Foundation
import HTTPServer
import Synchronization

/// Keeps files in memory the way Azure Blob Storage does, as far as jobs use it: whole blobs,
/// blocks and block lists, behind a signature that must be there.
final class BlobStore: HTTPHandler {
  private struct State {
    var blobs: [String: [UInt8]] = [:]
    var blocks: [String: [String: [UInt8]]] = [:]
    var failures = 0
    var requests = 0
  }

  private let state = Mutex(State())

  subscript(path: String) -> [UInt8]? {
    get { state.withLock { $0.blobs[path] } }
    set { state.withLock { $0.blobs[path] = newValue } }
  }

  var requests: Int { state.withLock { $0.requests } }
  /// How many blocks a blob was made of; 0 for one that came whole.
  func blockCount(_ path: String) -> Int { state.withLock { $0.blocks[path]?.count ?? 0 } }
  /// Answers the next requests with 503.
  func fail(_ count: Int) { state.withLock { $0.failures = count } }

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    let path = String(decoding: request.target.rawPath, as: UTF8.self)
    guard request.target.queryItem("sig")?.value == "a+b" else { return HTTPResponse(.forbidden) }
    let isBusy = state.withLock { state in
      state.requests += 1
      state.failures -= 1
      return state.failures >= 0
    }
    if isBusy { return HTTPResponse(.serviceUnavailable) }
    switch request.method {
    case .get where path.hasSuffix("/moved"):
      return HTTPResponse(302, headers: ["Location": "http://127.0.0.1:1/"])
    case .get:
      guard let blob = self[path] else { return HTTPResponse(.notFound) }
      return HTTPResponse(.ok, body: .bytes(blob))
    case .put: return put(request, path)
    default: return HTTPResponse(.methodNotAllowed)
    }
  }

  private func put(_ request: HTTPRequest, _ path: String) -> HTTPResponse {
    switch request.target.queryItem("comp")?.value {
    case nil:
      guard request.headers["x-ms-blob-type"] == "BlockBlob" else {
        return HTTPResponse(.badRequest)
      }
      self[path] = request.body
    case "block":
      guard let id = request.target.queryItem("blockid")?.value else {
        return HTTPResponse(.badRequest)
      }
      state.withLock { $0.blocks[path, default: [:]][id] = request.body }
    case "blocklist":
      let list = String(decoding: request.body, as: UTF8.self)
      let ids = list.matches(of: /<Latest>([^<]+)<\/Latest>/).map { String($0.1) }
      let isWhole = state.withLock { state in
        let blocks = ids.compactMap { state.blocks[path]?[$0] }
        state.blobs[path] = blocks.flatMap { $0 }
        return blocks.count == ids.count
      }
      guard isWhole else { return HTTPResponse(.badRequest) }
    default: return HTTPResponse(.badRequest)
    }
    return HTTPResponse(.created)
  }
}
