/// The version: here, and nowhere else. Packages, the manual page and the image take it from this
/// file.
enum BelfryVersion {
  static let current = "0.1.0"
}
