package import Foundation
import HTTPClient

/// An address that the operator's rules allow.
struct JobAddress: Hashable, Sendable {
  var url: String
  let host: String
  /// Whether the host may lead to a public address only.
  let isPublicOnly: Bool
}

/// One entry of the setting `jobHosts`.
private struct JobHostRule {
  /// In lower case, without brackets; begins with a dot where it stands for what is below it.
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

  /// The operator has named the very machine: what its name leads to is theirs to know.
  private var isExact: Bool {
    !name.hasPrefix(".") && (port != nil || name == "localhost" || IPAddress(name) != nil)
  }

  var isPublicOnly: Bool { !isExact }

  /// Whether scheme and port are allowed.
  func allows(_ address: HTTPAddress) -> Bool {
    if isExact { return port.map { $0 == address.port } ?? true }
    return address.scheme == "https" && address.port == port ?? 443
  }
}

/// A place that a job may use, found from a URI that a client has named.
enum JobPlace: Hashable, Sendable {
  case remote(JobAddress)
  /// An absolute path inside the directory that the operator has named, links resolved.
  case file(String)
}

extension JobConfiguration {
  /// The file that an import reads.
  /// - Throws: ``JobFault`` for a place that the operator has not allowed.
  func input(_ uri: String) throws(JobFault) -> JobPlace {
    guard try Self.scheme(of: uri, member: "ImportFileUri") == "file" else {
      return .remote(try remote(uri, path: nil))
    }
    return .file(try file(uri, path: nil))
  }

  /// A file of results in the container that a job names.
  /// - Parameter path: Below the container; segments need no encoding.
  /// - Throws: ``JobFault`` for a place that the operator has not allowed.
  func output(_ uri: String, path: String) throws(JobFault) -> JobPlace {
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

  /// - Parameter path: Added to the URI's own.
  private func remote(_ uri: String, path: String?) throws(JobFault) -> JobAddress {
    var text = uri.prefix { $0 != "#" }
    if let path {
      let query = text.firstIndex(of: "?").map { text[$0...] } ?? ""
      text = text.dropLast(query.count)
      while text.last == "/" { text.removeLast() }
      text = "\(text)/\(path)\(query)"
    }
    // Read by the reader that sends, so that what is checked is what is called.
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
    // A name that steps up has no business here, whatever it would come out at.
    guard named.hasPrefix("/"), !named.split(separator: "/").contains(".."),
      !named.utf8.contains(0)
    else { throw outside }
    var target = URL(fileURLWithPath: named).standardizedFileURL
    // What is not there yet cannot be a link; the nearest thing that is there decides.
    var missing: [String] = []
    while !FileManager.default.fileExists(atPath: target.path), target.path != "/" {
      // A link to nowhere does not exist to FileManager, and would be written through.
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

/// Where jobs may read and write, and how they go about it.
package struct JobConfiguration: Sendable {
  /// The directory for the working files of jobs under way; made when it is missing.
  package var workspace: URL
  /// The hosts that jobs may fetch from and write to; none unless an operator names them. `host`
  /// and `*.suffix` (every host below a domain) by HTTPS at its own port and at public addresses
  /// only; `host:port`, an IP address and `localhost` wherever that is, by HTTP, too.
  package var allowedHosts: [String] = []
  /// PEM certificates trusted beside the system's store.
  package var extraAnchorsPEM: [UInt8] = []
  /// The directory in which `file:` URIs must lie; `nil` allows none.
  package var directory: URL?
  /// The name of the namespace, with which the paths of results begin.
  package var namespace = "belfry"
  /// How long a job waits before it starts, so that a client that reads it right after submitting
  /// finds it as the service shows it then: not yet running.
  package var startDelay = Duration.seconds(1)
  /// Lines, or registrations, between two checkpoints.
  package var batch = 256
  /// The largest file that is fetched, in bytes.
  package var maximumInput: Int64 = 16 << 30
  /// The longest line of an import, in bytes: the longest body of a request.
  package var maximumLine = HubAPIConfiguration.maxBodyBytes
  /// How often a fetch or a write is tried before the job fails.
  package var attempts = 4

  package init(workspace: URL) { self.workspace = workspace }
}

/// Why a job cannot go on; its text stands in the job.
struct JobFault: Error, Hashable, CustomStringConvertible {
  let description: String
  /// Another try may help.
  let isTransient: Bool

  init(_ description: String, isTransient: Bool = false) {
    self.description = description
    self.isTransient = isTransient
  }
}
