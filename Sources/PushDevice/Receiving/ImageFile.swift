public import Foundation
public import NotificationHubs

/// Fetches the image of a notification into a file.
public protocol ImageFetching: Sendable {
  /// - Returns: A file whose extension tells its kind; the caller moves or deletes it.
  func fetch(_ url: URL) async throws -> URL
}

/// The kinds of images that a notification can show.
package enum ImageKind: String, Hashable, Sendable, CaseIterable {
  case jpeg, png, gif

  /// Tells the kind by the first bytes of the file: names and headers of servers are often wrong,
  /// and the system refuses an attachment whose extension does not fit.
  package init?(firstBytes bytes: some Collection<UInt8>) {
    guard let kind = Self.allCases.first(where: { bytes.starts(with: $0.signature) }) else {
      return nil
    }
    self = kind
  }

  private var signature: [UInt8] {
    switch self {
    case .jpeg: [0xFF, 0xD8, 0xFF]
    case .png: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    case .gif: Array("GIF8".utf8)
    }
  }
}

/// Fetches images over HTTP, piece by piece into a file: an extension has about 24 MB of memory.
public struct ImageDownload: ImageFetching {
  /// The largest image that the system attaches, in bytes.
  public static let limit = 10 << 20

  private let transport: any StreamingTransport
  private let directory: URL

  /// - Parameter directory: The place of the files until their caller moves them.
  public init(
    transport: any StreamingTransport = URLSessionTransport.shared,
    directory: URL = FileManager.default.temporaryDirectory
  ) {
    self.transport = transport
    self.directory = directory
  }

  public func fetch(_ url: URL) async throws -> URL {
    let file = directory.appending(path: UUID().uuidString)
    try Data().write(to: file)
    do {
      let handle = try FileHandle(forWritingTo: file)
      defer { try? handle.close() }
      let start = Locked((head: Data(), count: 0))
      var request = TransportRequest(method: "GET", url: url)
      request.followsRedirects = true
      let reply = try await transport.stream(request) { piece in
        try start.withLock { start in
          if start.head.count < 8 { start.head += piece.prefix(8) }
          start.count += piece.count
          guard start.count <= Self.limit else { throw ImageError.tooLarge }
        }
        try handle.write(contentsOf: piece)
      }
      guard (200...299).contains(reply.status) else { throw ImageError.status(reply.status) }
      guard let kind = ImageKind(firstBytes: start.withLock { $0.head }) else {
        throw ImageError.unknownKind
      }
      let named = file.appendingPathExtension(kind.rawValue)
      try FileManager.default.moveItem(at: file, to: named)
      return named
    } catch {
      try? FileManager.default.removeItem(at: file)
      throw error
    }
  }
}

/// The reason why a notification has no image.
public enum ImageError: Error, Hashable, Sendable {
  /// The server's reply was not a success.
  case status(Int)
  /// Larger than ``ImageDownload/limit``.
  case tooLarge
  /// Neither JPEG, PNG nor GIF.
  case unknownKind
}
