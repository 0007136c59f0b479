import CWebFiles
import CZlib
import HTTPServer

/// A file of a web page: embedded in the program by the compiler, or made from what the program
/// knows.
struct WebFile: Sendable {
  /// The path below the page's folder, such as `texts/en.js`.
  let name: String
  let bytes: [UInt8]
  /// The gzip form, a third of the size. Created once for all files, when the first one is
  /// requested, in about 20 ms.
  private let compressed: [UInt8]
  /// A tag that changes with the content.
  private let contentTag: String

  static let portal = {
    var files: [String: WebFile] = [:]
    var next = belfry_portal_files()
    while let name = next.pointee.name, let text = next.pointee.text {
      let file = WebFile(name: String(cString: name), text: text)
      files[file.name] = file
      next += 1
    }
    return files
  }()

  private init(name: String, text: UnsafePointer<UInt8>) {
    var count = 0
    while text[count] != 0 { count += 1 }
    self.init(name: name, bytes: Array(UnsafeBufferPointer(start: text, count: count)))
  }

  init(name: String, bytes: [UInt8]) {
    self.name = name
    self.bytes = bytes
    // FNV-1a: it only has to distinguish the versions of one file.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    contentTag = String(hash, radix: 16)
    compressed = [UInt8](unsafeUninitializedCapacity: bytes.count + 64) { buffer, written in
      written = bytes.withUnsafeBufferPointer {
        belfry_gzip($0.baseAddress, $0.count, buffer.baseAddress, buffer.count)
      }
    }
  }

  /// The file, or a reply that it has not changed. Browsers revalidate it each time, since after an
  /// update of Belfry all files of a page must match.
  func response(to request: HTTPRequest) -> HTTPResponse {
    let isCompressed = !compressed.isEmpty && compressed.count < bytes.count && request.takesGzip
    let entityTag = "\"" + contentTag + (isCompressed ? "-gzip" : "") + "\""
    var response = HTTPResponse(
      .ok,
      headers: ["Cache-Control": "no-cache", "ETag": entityTag, "Vary": "Accept-Encoding"])
    let known = (request.headers["If-None-Match"] ?? "").split { $0 == "," || $0 == " " }
    if known.contains(where: { $0 == entityTag || $0 == "W/" + entityTag }) {
      response.status = .notModified
      return response
    }
    response.headers["Content-Type"] = type
    if isCompressed { response.headers["Content-Encoding"] = "gzip" }
    response.body = .bytes(isCompressed ? compressed : bytes)
    return response
  }

  private var type: String {
    switch name.split(separator: ".").last {
    case "html": "text/html; charset=utf-8"
    case "css": "text/css; charset=utf-8"
    case "js": "text/javascript; charset=utf-8"
    case "svg": "image/svg+xml"
    case "json": "application/json"
    default: "text/plain; charset=utf-8"
    }
  }
}

extension HTTPRequest {
  /// Whether the client accepts gzip (RFC 9110, section 12.5.3). `*` and `x-gzip` are ignored, and
  /// their senders get the uncompressed file.
  fileprivate var takesGzip: Bool {
    (headers["Accept-Encoding"] ?? "").lowercased().split(separator: ",").contains { coding in
      let parts = coding.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
      guard parts.first == "gzip" else { return false }
      return !parts.dropFirst().contains { $0.hasPrefix("q=0") && !$0.contains { "1"..."9" ~= $0 } }
    }
  }
}

extension HTTPResponse {
  /// The response with headers for everything below a page: only scripts of this origin may run,
  /// and no other page may embed it in a frame.
  ///
  /// - Parameter policy: The permissions of the page in addition to `default-src 'none'`.
  func guarded(_ policy: String...) -> HTTPResponse {
    var response = self
    let all =
      ["default-src 'none'"] + policy + [
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
      ]
    response.headers["Content-Security-Policy"] = all.joined(separator: "; ")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response
  }
}
