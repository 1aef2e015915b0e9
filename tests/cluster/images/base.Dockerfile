# Debian with git and CA certificates, made by mmdebstrap: stands in for a base image from outside.
FROM scratch
ADD base.tar /
CMD ["/bin/sh"]
