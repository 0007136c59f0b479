import CMicrohttpd  // brings the limit type's members along

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The number of files and sockets that this process may have open.
package enum DescriptorLimit {
  /// The number reserved for databases, push services, jobs and the rest of the process.
  package static let reserve = 256

  package static let advice =
    "raise the limit (LimitNOFILE= of its service, ulimit -n in its shell)"

  /// Raises the limit as far as the system permits without privileges.
  ///
  /// - Returns: The new limit.
  package static func raise() -> Int {
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return 1024 }
    #if canImport(Darwin)
      let highest = min(limit.rlim_max, rlim_t(OPEN_MAX))
    #else
      let highest = limit.rlim_max
    #endif
    if limit.rlim_cur < highest {
      var raised = limit
      raised.rlim_cur = highest
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return Int(clamping: limit.rlim_cur)
  }

  /// The reason why this number is too low for a server; `nil` if it suffices. The Swift runtime
  /// ends the process if it gets no descriptor for itself.
  package static func fault(_ descriptors: Int) -> String? {
    guard descriptors < reserve else { return nil }
    return
      "this process may have \(descriptors) files open, and a server needs \(reserve) at least: "
      + advice
  }

  /// The number of client connections for which `descriptors` suffice: a listener may briefly
  /// exceed its limit by an eighth.
  package static func connections(within descriptors: Int) -> Int {
    max(1, (descriptors - reserve) * 7 / 8)
  }
}
