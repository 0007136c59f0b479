package import Foundation
import HTTPClient

/// An address permitted by the operator's rules.
struct JobAddress: Hashable, Sendable {
  var url: String
  let host: String
  /// Whether the host may resolve to public addresses only.
  let isPublicOnly: Bool
}

/// One entry of the setting `jobHosts`.
private struct JobHostRule {
  /// The name in lower case, without brackets; a leading dot stands for all hosts below the domain.
  let name: String
  let port: UInt16?

  init?(_ pattern: String) {
    var name = pattern.lowercased()[...]
    var port: UInt16?
    if let colon = name.lastIndex(of: ":"), let number = UInt16(name[name.index(after: colon)...]),
      name.hasPrefix("[") || name.firstIndex(of: ":") == colon
    {
      port = number
      name = name[..<colon]
    }
    if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
    if name.hasPrefix("*.") { name = name.dropFirst() }
    guard !name.isEmpty, name != "." else { return nil }
    self.name = String(name)
    self.port = port
  }

  func names(_ host: String) -> Bool {
    HTTPAddress.isHost(host, in: CollectionOfOne(name))
  }

  /// Whether the operator named the exact machine, whose address is then not checked.
  private var isExact: Bool {
    !name.hasPrefix(".") && (port != nil || name == "localhost" || IPAddress(name) != nil)
  }

  var isPublicOnly: Bool { !isExact }

  /// Whether scheme and port are permitted.
  func allows(_ address: HTTPAddress) -> Bool {
    if isExact { return port.map { $0 == address.port } ?? true }
    return address.scheme == "https" && address.port == port ?? 443
  }
}

/// A resolved location that a job may use, from a URI given by a client.
enum JobLocation: Hashable, Sendable {
  case remote(JobAddress)
  /// An absolute path inside the directory configured by the operator, with links resolved.
  case file(String)
}

extension JobConfiguration {
  /// Resolves the file that an import reads.
  /// - Throws: ``JobFault`` for a location that the operator has not permitted.
  func input(_ uri: String) throws(JobFault) -> JobLocation {
    guard try Self.scheme(of: uri, member: "ImportFileUri") == "file" else {
      return .remote(try remote(uri, path: nil))
    }
    return .file(try file(uri, path: nil))
  }

  /// Resolves a result file in the container of a job.
  /// - Parameter path: The path below the container, whose segments need no encoding.
  /// - Throws: ``JobFault`` for a location that the operator has not permitted.
  func output(_ uri: String, path: String) throws(JobFault) -> JobLocation {
    guard try Self.scheme(of: uri, member: "OutputContainerUri") == "file" else {
      return .remote(try remote(uri, path: path))
    }
    return .file(try file(uri, path: path))
  }

  private static func scheme(
    of uri: String, member: String
  ) throws(JobFault) -> String {
    guard let colon = uri.firstIndex(of: ":"), !uri[..<colon].isEmpty else {
      throw JobFault("\(member) is not a URI")
    }
    let scheme = uri[..<colon].lowercased()
    guard ["http", "https", "file"].contains(scheme) else {
      throw JobFault("\(member) has the scheme '\(scheme)'; use https, http or file")
    }
    return scheme
  }

  /// - Parameter path: A path to append to that of the URI.
  private func remote(_ uri: String, path: String?) throws(JobFault) -> JobAddress {
    var text = uri.prefix { $0 != "#" }
    if let path {
      let query = text.firstIndex(of: "?").map { text[$0...] } ?? ""
      text = text.dropLast(query.count)
      while text.last == "/" { text.removeLast() }
      text = "\(text)/\(path)\(query)"
    }
    // Parsed by the parser that the transfer uses, so that the URI checked is the one called.
    guard let address = HTTPAddress(String(text)) else {
      throw JobFault("a URI of the job has no host, names a user, or cannot be read")
    }
    let rules = allowedHosts.compactMap { JobHostRule($0) }.filter { $0.names(address.host) }
    guard !rules.isEmpty else {
      throw JobFault(
        "jobs may not use the host '\(address.host)'; the operator of this hub can allow it with "
          + "the setting jobHosts")
    }
    guard
      let rule = rules.first(where: { $0.allows(address) && !$0.isPublicOnly })
        ?? rules.first(where: { $0.allows(address) })
    else {
      throw JobFault(
        "jobs may use the host '\(address.host)' by https at port 443 only; the operator of this "
          + "hub can allow another port as host:port with the setting jobHosts")
    }
    return JobAddress(
      url: String(text), host: address.host, isPublicOnly: rule.isPublicOnly)
  }

  private func file(_ uri: String, path: String?) throws(JobFault) -> String {
    guard let directory else {
      throw JobFault(
        "jobs may not use files of the server; its operator can name a directory with the setting "
          + "jobDirectory")
    }
    let outside = JobFault("a file: URI of the job lies outside the directory for jobs")
    guard let parts = URLComponents(string: uri), ["", "localhost"].contains(parts.host ?? "")
    else { throw outside }
    let root = directory.resolvingSymlinksInPath().standardizedFileURL.path
    var named = parts.path
    if let path { named += "/" + path }
    // A path with parent references is refused, wherever it leads.
    guard named.hasPrefix("/"), !named.split(separator: "/").contains(".."),
      !named.utf8.contains(0)
    else { throw outside }
    var target = URL(fileURLWithPath: named).standardizedFileURL
    // A missing file cannot be a link; the nearest existing ancestor decides.
    var missing: [String] = []
    while !FileManager.default.fileExists(atPath: target.path), target.path != "/" {
      // FileManager reports a dangling link as missing, but writing would follow it.
      if (try? FileManager.default.destinationOfSymbolicLink(atPath: target.path)) != nil {
        throw outside
      }
      missing.append(target.lastPathComponent)
      target.deleteLastPathComponent()
    }
    target = target.resolvingSymlinksInPath().standardizedFileURL
    for name in missing.reversed() { target.append(path: name) }
    guard target.path.hasPrefix(root == "/" ? root : root + "/") else { throw outside }
    return target.path
  }
}

/// The locations that jobs may read and write, and their limits.
package struct JobConfiguration: Sendable {
  /// The directory for the working files of running jobs; created if it is missing.
  package var workspace: URL
  /// The hosts that jobs may fetch from and write to; none by default. `host` and `*.suffix` (every
  /// host below a domain) allow HTTPS at its default port and public addresses only; `host:port`,
  /// an IP address and `localhost` allow any address, and HTTP too.
  package var allowedHosts: [String] = []
  /// PEM certificates trusted in addition to the system's store.
  package var extraAnchorsPEM: [UInt8] = []
  /// The directory that must contain `file:` URIs; `nil` permits none.
  package var directory: URL?
  /// The name of the namespace, the first component of result paths.
  package var namespace = "belfry"
  /// The delay before a job starts, so that a client that reads it right after submitting finds it
  /// as the service shows it then: not yet running.
  package var startDelay = Duration.seconds(1)
  /// The number of lines or registrations between two checkpoints.
  package var batch = 256
  /// The maximum size of a fetched file, in bytes.
  package var maximumInput: Int64 = 16 << 30
  /// The maximum length of an import line, in bytes: that of a request body.
  package var maximumLine = HubAPIConfiguration.defaultMaxBodyBytes
  /// The number of attempts to fetch or write before the job fails.
  package var attempts = 4

  package init(workspace: URL) { self.workspace = workspace }
}

/// The error that ends a job; its text is shown in the job.
struct JobFault: Error, Hashable, CustomStringConvertible {
  let description: String
  /// Whether a retry may help.
  let isTransient: Bool

  init(_ description: String, isTransient: Bool = false) {
    self.description = description
    self.isTransient = isTransient
  }
}
